"""What English tokens mean: a table in the form of model2vec; see biglp's ``text_model``."""
