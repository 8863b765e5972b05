from __future__ import annotations

import re
from pathlib import Path

import pytest

from ingest.errors import SettingsError
from ingest.load_settings import load_settings, settings_hash
from ingest.settings import KafkaSettings, Settings, StoreSettings, TtlDays

MINIMAL = """
[experiment]
name = "e"
reference = "fp16"
candidates = ["awq-4.bit"]
models = { "*" = { fp16 = "m", "awq-4.bit" = "m-awq" } }
[endpoints.fp16]
url = "http://127.0.0.1:1"
[endpoints."awq-4.bit"]
url = "https://gpu.example/openai"
"""


def load(tmp_path: Path, text: str = MINIMAL, **environ: str) -> Settings:
    file = tmp_path / "gnomon.toml"
    file.write_text(text, encoding="utf-8")
    return load_settings(file, environ)


def refusal(tmp_path: Path, text: str = MINIMAL, **environ: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, text, **environ)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{tmp_path}/")


def test_minimal_file_has_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert settings.experiment.candidates == ["awq-4.bit"]
    assert settings.experiment.models == {"*": {"fp16": "m", "awq-4.bit": "m-awq"}}
    assert settings.endpoints["awq-4.bit"].url == "https://gpu.example/openai"
    assert settings.kafka == KafkaSettings(group=f"gnomon-{settings.experiment.name}")
    assert settings.store == StoreSettings()


def test_environment_sets_every_kind_of_value(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        GNOMON_KAFKA_BOOTSTRAP_SERVERS="a:9092, b:9093",
        GNOMON_KAFKA_PASSWORD="hush",
        GNOMON_STORE_URL="http://clickhouse:8123",
        GNOMON_STORE_VERIFY_TLS="false",
        GNOMON_STORE_CLUSTER="main",
        GNOMON_STORE_TTL_DAYS_PAIRS="90",
        GNOMON_EXPERIMENT_NOISE_FRACTION="0.25",
        GNOMON_EXPERIMENT_SEED="11",
        GNOMON_ENDPOINT_AWQ_4_BIT_API_KEY="sk-1",
        GNOMON_ENDPOINT_FP16_SUPPORTS_FORCED="true",
        GNOMON_ALERTS_TOLERATED_REGRESSION_RATE="0.02",
        GNOMON_KAFKA_USERNAME="",
        HOME="elsewhere",
    )
    assert settings.kafka.bootstrap_servers == ["a:9092", "b:9093"]
    assert settings.kafka.password == "hush"
    assert settings.kafka.username is None
    assert settings.store.url == "http://clickhouse:8123"
    assert settings.store.verify_tls is False
    assert settings.store.cluster == "main"
    assert settings.store.ttl_days == TtlDays(pairs=90)
    assert settings.experiment.noise_fraction == 0.25
    assert settings.experiment.seed == 11
    assert settings.endpoints["awq-4.bit"].api_key == "sk-1"
    assert settings.endpoints["fp16"].api_key is None
    assert settings.endpoints["fp16"].supports_forced is True
    assert settings.alerts.tolerated_regression_rate == 0.02


def test_days_to_keep_a_table_are_checked_like_any_value(tmp_path: Path) -> None:
    text = MINIMAL + "[store.ttl_days]\n"
    assert load(tmp_path, text + "pairs = 0\ntokens = 3\n").store.ttl_days == TtlDays(pairs=0, tokens=3)
    message = refusal(tmp_path, text + "pairs = -1\n")
    assert message == "gnomon.toml: store.ttl_days.pairs is -1; it must be a whole number, at least 0"
    assert "store.ttl_days.pair is not a known key; did you mean pairs?" in refusal(
        tmp_path, text + "pair = 1\n"
    )
    message = refusal(tmp_path, GNOMON_STORE_TTL_DAYS_PAIRS="soon")
    assert message.startswith("GNOMON_STORE_TTL_DAYS_PAIRS: store.ttl_days.pairs is 'soon'; it must be")


def test_an_embedded_engine_has_no_cluster(tmp_path: Path) -> None:
    message = refusal(tmp_path, MINIMAL + '[store]\ncluster = "main"\n')
    assert message == "gnomon.toml: store.cluster is set, and the embedded engine has no clusters"


def test_environment_wins_over_the_file(tmp_path: Path) -> None:
    text = MINIMAL + '[kafka]\ngroup = "from-file"\n'
    assert load(tmp_path, text).kafka.group == "from-file"
    assert load(tmp_path, text, GNOMON_KAFKA_GROUP="from-env").kafka.group == "from-env"
    # None given: one of its own, so that two experiments do not take each other's records.
    own = "gnomon-e"
    assert load(tmp_path).kafka.group == own
    assert load(tmp_path, MINIMAL + '[kafka]\ngroup = ""\n').kafka.group == own


def test_secret_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("päss word\n", encoding="utf-8")
    assert load(tmp_path, GNOMON_STORE_PASSWORD_FILE=str(secret)).store.password == "päss word"
    message = refusal(tmp_path, GNOMON_STORE_PASSWORD_FILE=str(secret), GNOMON_STORE_PASSWORD="x")
    assert message == "GNOMON_STORE_PASSWORD and GNOMON_STORE_PASSWORD_FILE are both set; keep one"
    message = refusal(tmp_path, GNOMON_STORE_PASSWORD_FILE="nowhere/secret")
    assert message == "GNOMON_STORE_PASSWORD_FILE: cannot read nowhere/secret: No such file or directory"
    secret.write_text("\n")
    assert "is empty" in refusal(tmp_path, GNOMON_STORE_PASSWORD_FILE=str(secret))


def test_only_secrets_have_a_file_variable(tmp_path: Path) -> None:
    assert "GNOMON_STORE_URL_FILE sets nothing" in refusal(tmp_path, GNOMON_STORE_URL_FILE="x")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'url = "http://127.0.0.1:1"',
            'url = "ftp://127.0.0.1:1"',
            "gnomon.toml: endpoints.fp16.url is 'ftp://127.0.0.1:1'; "
            "it must be a URL that starts with http:// or https://",
        ),
        (
            'url = "http://127.0.0.1:1"',
            "",
            "gnomon.toml: endpoints.fp16.url is missing; "
            "it must be a URL that starts with http:// or https://",
        ),
        (
            'url = "http://127.0.0.1:1"',
            'url = "http://127.0.0.1:1"\nconect_timeout_s = 3',
            "gnomon.toml: endpoints.fp16.conect_timeout_s is not a known key; "
            "did you mean connect_timeout_s?",
        ),
        (
            'name = "e"',
            'name = "e"\nnoise_fraction = 1.5',
            "gnomon.toml: experiment.noise_fraction is 1.5; it must be a number, at least 0 and at most 1",
        ),
        (
            'name = "e"',
            'name = "e"\nseed = true',
            "gnomon.toml: experiment.seed is True; it must be a whole number",
        ),
        (
            'name = "e"',
            'name = "e"\nnoise_fraction = nan',
            "gnomon.toml: experiment.noise_fraction is nan; it must be a number, at least 0 and at most 1",
        ),
        (
            'candidates = ["awq-4.bit"]',
            "candidates = []",
            "gnomon.toml: experiment.candidates is []; it must be a list of at least 1, each "
            "a name of up to 64 letters, digits and . _ - that starts with one",
        ),
        (
            'reference = "fp16"',
            'reference = "fp61"',
            "gnomon.toml: experiment.reference names 'fp61', which [endpoints] does not have; "
            "did you mean fp16?",
        ),
        (
            'reference = "fp16"',
            'reference = "fp16"\nreference_b = "fp16"',
            "gnomon.toml: experiment.reference_b is 'fp16', the reference itself; leave it out",
        ),
        (
            'reference = "fp16"',
            'reference = "fp16"\nreference_b = "fp17"',
            "gnomon.toml: experiment.reference_b names 'fp17', which [endpoints] does not have; "
            "did you mean fp16?",
        ),
        (
            'candidates = ["awq-4.bit"]',
            'candidates = ["fp16"]',
            "gnomon.toml: experiment.candidates holds 'fp16', which is the reference itself",
        ),
        (
            'candidates = ["awq-4.bit"]',
            'candidates = ["awq-4.bit", "awq-4.bit"]',
            "gnomon.toml: experiment.candidates names 'awq-4.bit' twice",
        ),
        (
            ', "awq-4.bit" = "m-awq" }',
            "}",
            "gnomon.toml: experiment.models.\"*\" has no model for endpoint 'awq-4.bit'",
        ),
        (
            "fp16 = \"m\"",
            "fp16 = 7",
            "gnomon.toml: experiment.models.\"*\".fp16 is 7; it must be a string",
        ),
        (
            '{ "*" = { fp16 = "m", "awq-4.bit" = "m-awq" } }',
            "{}",
            'gnomon.toml: experiment.models is empty; it needs a row for each served model, or "*" for any',
        ),
        (
            "[experiment]",
            "endpoint = 1\n[experiment]",
            "gnomon.toml: endpoint is not a known key; did you mean endpoints?",
        ),
        (
            "[experiment]",
            "kafka = 1\n[experiment]",
            "gnomon.toml: kafka is 1; it must be a table",
        ),
        (
            '[endpoints."awq-4.bit"]',
            '[endpoints."awq 4"]\nurl = "http://x"\n[endpoints."awq-4.bit"]',
            "gnomon.toml: endpoints.\"awq 4\" is no valid key; "
            "it must be a name of up to 64 letters, digits and . _ - that starts with one",
        ),
    ],
)  # fmt: skip
def test_refusal_names_file_key_value_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert MINIMAL.count(old) == 1
    assert refusal(tmp_path, MINIMAL.replace(old, new)) == message


@pytest.mark.parametrize(
    ("section", "message"),
    [
        (
            '[kafka]\nsecurity_protocol = "TLS"',
            "kafka.security_protocol is 'TLS'; it must be one of PLAINTEXT, SASL_PLAINTEXT, SASL_SSL, SSL",
        ),
        (
            '[kafka]\nbootstrap_servers = ["host:port"]',
            "kafka.bootstrap_servers is wrong: "
            "'host:port' is not the address of a Kafka broker; write host:port",
        ),
        ('[kafka]\ntls_ca_file = "no.pem"', "kafka.tls_ca_file is 'no.pem'; there is no such file"),
        (
            '[kafka]\ntls_cert_file = "c.pem"',
            "kafka.tls_key_file is missing; a certificate and its key go together",
        ),
        ('[kafka]\ntopic = "a b"', "kafka.topic is 'a b'; it must be 1 to 249 letters, digits, . _ -"),
        (
            '[kafka]\ntopic = "gnomon.dead"',
            "kafka.dead_letter_topic is 'gnomon.dead', the topic that is read",
        ),
        (
            "[kafka]\nheartbeat_interval_ms = 10000",
            "kafka.heartbeat_interval_ms is 10000; "
            "it must be under session_timeout_ms (10000), best a third of it",
        ),
        (
            '[kafka]\nsecurity_protocol = "SASL_SSL"\nusername = "u"',
            "kafka.password is missing; SASL_SSL needs it: set GNOMON_KAFKA_PASSWORD",
        ),
        ('[routes.x]\nschema = "no.json"', "routes.x.schema is 'no.json'; there is no such file"),
        (
            "[alerts]\ntolerated_regression_rate = 0.5",
            "alerts.tolerated_regression_rate is 0.5; it must be a number, over 0 and under 0.5",
        ),
        ('[store]\nurl = "http://[::1"', "store.url is no URL: Invalid IPv6 URL"),
        (
            '[store]\nurl = "http://u:pw@host:8123"',
            "store.url holds a user or password; secrets come from the environment only",
        ),
        (
            '[endpoints.extra]\nurl = "http://x:99999"',
            "endpoints.extra.url is no URL: Port out of range 0-65535",
        ),
        (
            '[endpoints.extra]\nurl = "http://x"\nheaders = {a = "b\\r\\nc"}',
            "endpoints.extra.headers.a must be one line of text",
        ),
        (
            '[store]\nurl = "tcp://u:pw@host"',
            "store.url is 'tcp://***@host'; "
            "it must be http://HOST:PORT, https://HOST:PORT or chdb:///FOLDER",
        ),
    ],
)  # fmt: skip
def test_sections_are_checked(tmp_path: Path, section: str, message: str) -> None:
    assert refusal(tmp_path, MINIMAL + section) == f"gnomon.toml: {message}"


@pytest.mark.parametrize(
    ("section", "variable"),
    [
        ('[kafka]\npassword = "hush"', "GNOMON_KAFKA_PASSWORD"),
        ('[store]\npassword = "hush"', "GNOMON_STORE_PASSWORD"),
        ('[endpoints.a-b]\nurl = "http://x"\napi_key = "hush"', "GNOMON_ENDPOINT_A_B_API_KEY"),
    ],
)
def test_secrets_in_the_file_are_refused(tmp_path: Path, section: str, variable: str) -> None:
    message = refusal(tmp_path, MINIMAL + section)
    assert f"set {variable} or {variable}_FILE" in message
    assert "hush" not in message


def test_error_in_a_variable_names_the_variable(tmp_path: Path) -> None:
    message = refusal(tmp_path, GNOMON_EXPERIMENT_SEED="seven")
    assert message == "GNOMON_EXPERIMENT_SEED: experiment.seed is 'seven'; it must be a whole number"


def test_unknown_variable_names_the_nearest(tmp_path: Path) -> None:
    message = refusal(tmp_path, GNOMON_KAFKA_BOOTSTRAP_SERVER="a:1")
    assert message == (
        "GNOMON_KAFKA_BOOTSTRAP_SERVER sets nothing; did you mean GNOMON_KAFKA_BOOTSTRAP_SERVERS?"
    )
    assert "GNOMON_ENDPOINT_FP16_API_KEY?" in refusal(tmp_path, GNOMON_ENDPOINT_FP61_API_KEY="k")


def test_two_endpoints_with_one_variable_are_refused(tmp_path: Path) -> None:
    message = refusal(tmp_path, MINIMAL + '[endpoints.awq_4-bit]\nurl = "http://x"\n')
    assert "would both be set by GNOMON_ENDPOINT_AWQ_4_BIT_URL; rename one" in message


def test_broken_toml_gives_line_and_column(tmp_path: Path) -> None:
    message = refusal(tmp_path, "[experiment]\nname = oops\n")
    assert message == "gnomon.toml: broken TOML: Invalid value (at line 2, column 8)"


def test_missing_file_and_wrong_bytes(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"no\.toml: cannot read the settings: No such file"):
        load_settings(tmp_path / "no.toml", {})
    file = tmp_path / "latin1.toml"
    file.write_bytes(b"# caf\xe9")
    with pytest.raises(SettingsError, match="not UTF-8 at byte 5"):
        load_settings(file, {})
    file.write_bytes(b"\xef\xbb\xbf" + MINIMAL.encode())
    assert load_settings(file, {}).experiment.name == "e"
    with pytest.raises(SettingsError, match="experiment is missing; it must be a table"):
        load(tmp_path, "")


def test_files_come_back_absolute(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("x")
    settings = load(tmp_path, MINIMAL + '[store]\ntls_ca_file = "ca.pem"\n')
    assert settings.store.tls_ca_file == str(tmp_path / "ca.pem")


def test_hash_covers_what_decides_the_answers(tmp_path: Path) -> None:
    text = MINIMAL + '[endpoints.unused]\nurl = "http://unused"\n'
    base = settings_hash(load(tmp_path, text))
    assert re.fullmatch("[0-9a-f]{32}", base)

    def changed(old: str, new: str) -> str:
        assert old in text
        return settings_hash(load(tmp_path, text.replace(old, new, 1)))

    for old, new in [
        ("127.0.0.1:1", "127.0.0.1:2"),
        ("m-awq", "m-gptq"),
        ('name = "e"', 'name = "e"\ngreedy_fraction = 0.5'),
        ('name = "e"', 'name = "e"\nsample_fraction = 0.5'),
        ('name = "e"', 'name = "e"\nseed = 8'),
        ("[experiment]", "[sampling]\nkeep_errors = true\n[experiment]"),
        ("[experiment]", '[[sampling.rules]]\nroute = "chat"\nfraction = 0.1\n[experiment]'),
    ]:
        assert changed(old, new) != base, new
    for old, new in [
        ("http://unused", "http://other"),
        ('name = "e"', 'name = "renamed"'),
        ('url = "http://127.0.0.1:1"', 'url = "http://127.0.0.1:1"\ntotal_timeout_s = 7.0'),
        ("[experiment]", "[compare]\nnear_tie_nats = 1.0\n[experiment]"),
        ("[experiment]", "[delivery]\nmax_lag_s = 60.0\n[experiment]"),
    ]:
        assert changed(old, new) == base, new
    assert settings_hash(load(tmp_path, text, GNOMON_ENDPOINT_FP16_API_KEY="sk")) == base
