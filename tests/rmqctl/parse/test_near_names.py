"""Files with named fields: a name that is not known is refused with the nearest that is."""

import pytest

from rmqctl.dlq.edit import content_of
from rmqctl.errors import UsageProblem
from rmqctl.message.exchange.masking import parse_rules
from rmqctl.parse.near_names import mistyped_name, nearest_name
from tests.support.cli import run


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("queueId", "queue_id"),
        ("QUEUE-ID", "queue_id"),
        ("queue_idd", "queue_id"),
        ("value", "body"),
        ("zzz", None),
        ("", None),
        ("va-lue", "body"),
        ("valeu", "body"),
        ("b o d y", "body"),
    ],
)
def test_the_nearest_name(name, meant):
    assert nearest_name(name, ("queue_id", "body"), {"value": "body"}) == meant


def test_signs_make_no_name_less_like_another():
    assert nearest_name("a_b_c_d", ("abcd", "a_b_x_y"), cutoff=1.0) == "abcd"


def test_a_name_that_is_known_here_is_not_one_of_another_tool():
    assert nearest_name("Key", ("key", "tags"), {"key": "tags"}) == "tags"
    assert nearest_name("KE-Y", ("key", "tags"), {"k-ey": "tags"}) == "key"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.csv", "topic,queus\na,2\n", "a topic has no 'queus'; did you mean 'queues'?"),
        ("x.csv", "topic,queus\na,\n", "a topic has no 'queus'; did you mean 'queues'?"),
        ("x.csv", "topic,perm\na,6,7\n", "line 2: the line has more columns than the header"),
        ("x.csv", "topic,perm,perm\na,6,4\n", "has a column twice in its header"),
        ("x.json", '[{"topic":"a","partitions":3}]', "'partitions'; did you mean 'queues'?"),
        ("x.json", '[{"topic":"a","permission":null}]', "'permission'; did you mean 'perm'?"),
        ("x.yaml", "- topic: a\n  readQueueNum: 3\n", "did you mean 'read_queue_nums'?"),
        (
            "x.json",
            '[{"topic":"a","readQueueNums":3,"read_queues":4}]',
            "read_queue_nums is given twice, also as 'read_queues'",
        ),
    ],
)
def test_a_file_of_topics(store, tmp_path, name, text, sentence):
    (tmp_path / name).write_text(text)
    result = run("topic", "create", "--from-file", tmp_path / name)
    assert (result.code, result.raw) == (2, b"")
    assert sentence in result.err


@pytest.mark.parametrize(
    ("member", "meant"),
    [("keys", "properties.KEYS"), ("Tags", "properties.TAGS"), ("headers", "properties")]
    + [("bodyjson", "body_json"), ("flags", "flag")],
)
def test_what_an_editor_gives_back(member, meant):
    with pytest.raises(UsageProblem) as error:
        content_of(f'{{"body":"x","{member}":"y"}}', None)
    assert f"{member!r} is not a field of a message; did you mean {meant!r}?" in str(error.value)


def test_rules_of_masking_in_a_file(tmp_path):
    (tmp_path / "rules").write_text("# ours\npropertys.NAME=drop\n")
    with pytest.raises(ValueError, match="did you mean 'property'"):
        parse_rules(f"@{tmp_path / 'rules'}", None)
    with pytest.raises(ValueError, match="did you mean 'body'"):
        parse_rules("payload=drop", None)


def test_a_settings_file(tmp_path):
    (tmp_path / "s.toml").write_text('[contexs.prod]\nstore = "x"\n')
    result = run("config", "show", "--config", tmp_path / "s.toml")
    assert "unknown setting 'contexs'" in result.err
    assert "did you mean 'contexts'?" in result.err
    (tmp_path / "s.toml").write_text('Outputt = "json"\n')
    result = run("config", "show", "--config", tmp_path / "s.toml")
    assert "did you mean 'output'?" in result.err


def test_a_plan_that_is_expected(store, tmp_path):
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"a\n")
    plan = tmp_path / "plan.csv"
    plan.write_text("group,topic,queue_id,old_offset,oldoffset\ng,t,0,,\n")
    move = ["offset", "reset", "-g", "g", "--new-group", "-t", "t", "--to-earliest"]
    result = run(*move, "--expect", plan)
    assert result.code == 2
    assert "has 'oldoffset', which no plan has; did you mean 'old_offset'?" in result.err


def test_a_list_of_stores(tmp_path):
    (tmp_path / "stores.yaml").write_text("stores:\n  broker-a: /x\n")
    result = run("lag", "report", "-S", tmp_path / "stores.yaml")
    assert result.code == 2
    assert "the folder of stores is to be a text" in result.err


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("biling", "billing", "billing"),
        ("billign", "billing", "billing"),
        ("Billing", "billing", "billing"),
        ("bilings-eu", "billing-eu", "billing-eu"),
        ("billing-2", "billing-1", None),
        ("billing", "billing", None),
        ("g2x", "g1x", None),
        ("orders", "others", None),
        ("team-eu", "team-us", None),
    ],
)
def test_a_name_is_taken_for_a_mistyped_one(name, known, meant):
    assert mistyped_name(name, ["elsewhere", known]) == meant
