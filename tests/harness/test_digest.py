from evolve.harness.digest import harness_digest


def test_the_digest_does_not_depend_on_the_order_of_the_files():
    """The same folder has the same digest however it was read."""
    assert harness_digest({"a": b"1", "b": b"2"}) == harness_digest({"b": b"2", "a": b"1"})


def test_moving_a_byte_between_name_and_content_or_between_files_changes_the_digest():
    """Folders that read the same when run together are still different folders."""
    folders = [{"ab": b"c"}, {"a": b"bc"}, {"a": b"", "b": b"c"}, {"a": b"b", "c": b""}, {}, {"": b""}]
    assert len({harness_digest(folder) for folder in folders}) == len(folders)


def test_the_digest_of_a_known_folder_never_changes():
    """Digests stand in tags and ledgers, so the formula is fixed."""
    expected = "e748068339a34386c636972148bf3fd662cf6b92a392c887f051c4aa8cddbcbc"
    assert harness_digest({"harness.toml": b"schema = 1\n"}) == expected
