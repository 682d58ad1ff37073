"""The paper's numbers, as they stand in its tables."""

from paper import pages as paper


def test_papers_tables_parse_and_have_the_known_headlines():
    found = paper.tables()
    assert list(found) == ["HEPMASS", "SUSY", "mnist8m", "Protein", "Gisette"]
    for table in found.values():
        assert len(table.percent) == len(table.accuracy) == len(table.labels) == 4
        assert all(50 < value < 100 for line in table.accuracy for value in line.values())
        assert list(table.labels) == sorted(table.labels)
    assert found["mnist8m"].labels == (16, 164, 1648, 16488)
    assert found["mnist8m"].accuracy[0]["nystrom-kmeans 100"] == 72.86
    assert found["mnist8m"].best(1) == ("glnp 100", 91.16)
    assert found["SUSY"].best(3) == ("knn", 72.84)
    assert found["Protein"].best(3) == ("lp", 75.24)


def test_every_column_has_a_name_for_people():
    for column in paper.numbers()["columns"]:
        assert paper.column_name(column)
