"""Files elsewhere: copies of those in object stores, and Delta and Iceberg tables."""
