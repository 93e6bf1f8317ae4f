"""Options that several commands share, so that they read and default alike."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from podling.cli.pairs import pairs
from podling.machine.instance import DEFAULT_DATA_DIR, DEFAULT_NODE_DIR, Instance
from podling.model.gates import Gates
from podling.model.rules.admission_plugins import chosen_plugins
from podling.model.rules.authorization_modes import DEFAULT_MODES, read_modes
from podling.model.time import parse_duration

Command = Callable[..., Any]

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

IN_FLIGHT = (
    *(
        click.option(
            f"--max-{which}requests-inflight",
            name,
            type=click.IntRange(0),
            default=default,
            show_default=True,
            metavar="NUMBER",
            help=text,
        )
        for which, name, default, text in (
            ("", "reads", 400, "Requests that read, answered at a time."),
            (
                "mutating-",
                "writes",
                200,
                "Requests that write; with fairness all share both.",
            ),
        )
    ),
    click.option(
        "--enable-priority-and-fairness",
        "is_fair",
        type=click.BOOL,
        default=True,
        show_default=True,
        metavar="true|false",
        help="Whether FlowSchemas and PriorityLevelConfigurations say whose requests wait.",
    ),
)
IN_FLIGHT_NAMES = ("reads", "writes", "is_fair")
SERVING_NAMES = (
    *("certificate", "key", "by_name", "client_ca", "proxy_certificate", "proxy_key"),
    *("oldest", "suites"),
)
AUTHORIZATION_NAMES = (
    *("modes", "steps_file", "access_webhook", "access_webhook_version"),
    *("allowed_ttl", "other_ttl"),
)
_PROXY = (
    (
        "allowed-names",
        "proxy_names",
        "Common names of proxies that are believed.  [default: all of that authority]",
    ),
    ("username-headers", "proxy_users", "Headers in which proxies say who their client is."),
    ("uid-headers", "proxy_uids", "Headers in which they say its UID."),
    ("group-headers", "proxy_groups", "Headers in which they say its groups."),
    ("extra-headers-prefix", "proxy_extra_prefixes", "How headers begin in which they say more of it."),
)
_OIDC = (
    (
        "issuer-url",
        "oidc_issuer",
        "",
        "URL",
        "Issuer of JSON Web Tokens: what a configuration says in short.",
    ),
    ("client-id", "oidc_client", "", "AUDIENCE", "Whom its tokens are for."),
    ("username-claim", "oidc_username", "sub", "CLAIM", "Where they name the user."),
    ("username-prefix", "oidc_username_prefix", "", "PREFIX", "What names begin with; - is nothing."),
    ("groups-claim", "oidc_groups", "", "CLAIM", "Where they name the user's groups."),
    ("groups-prefix", "oidc_groups_prefix", "", "PREFIX", "What groups begin with."),
)


class Duration(click.ParamType[float]):
    """Go's form, such as `1m30s`, in seconds."""

    name = "duration"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        try:
            return value if isinstance(value, float) else parse_duration(value).total_seconds()
        except ValueError as error:
            self.fail(str(error), parameter, context)


def _listed(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(one for text in given for one in text.split(","))


def _listed_pairs(
    context: click.Context, parameter: click.Parameter, given: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    return pairs(context, parameter, _listed(context, parameter, given))


AUTHORIZATION = (
    click.option(
        "--authorization-mode",
        "modes",
        metavar="MODE,...",
        help="Who decides what users may do, in this order: Node, RBAC, Webhook, AlwaysAllow, AlwaysDeny.  "
        f"[default: {','.join(DEFAULT_MODES)}]",
    ),
    click.option(
        "--authorization-config",
        "steps_file",
        type=FILE,
        help="The same, in a file with an AuthorizationConfiguration, which may change.",
    ),
    click.option(
        "--authorization-webhook-config-file",
        "access_webhook",
        type=FILE,
        help="Whom the mode Webhook asks: the server of this kubeconfig.",
    ),
    click.option(
        "--authorization-webhook-version",
        "access_webhook_version",
        type=click.Choice(["v1beta1", "v1"]),
        help="Version of the SubjectAccessReviews that it is sent.  [default: v1beta1]",
    ),
    click.option(
        "--authorization-webhook-cache-authorized-ttl",
        "allowed_ttl",
        type=Duration(),
        metavar="DURATION",
        help="How long its answers are kept that allow something.  [default: 5m]",
    ),
    click.option(
        "--authorization-webhook-cache-unauthorized-ttl",
        "other_ttl",
        type=Duration(),
        metavar="DURATION",
        help="How long its other answers are kept.  [default: 30s]",
    ),
)
AUTHENTICATION = (
    click.option(
        "--anonymous-auth",
        "anonymous",
        type=click.BOOL,
        metavar="true|false",
        help="Whether requests without credentials are let in, as system:anonymous.  [default: true]",
    ),
    click.option(
        "--authentication-config",
        "config_file",
        type=FILE,
        help="Issuers of JSON Web Tokens, and strangers: a file with an AuthenticationConfiguration.",
    ),
    click.option(
        "--token-auth-file", "token_file", type=FILE, help="Tokens and their users: token,user,uid,groups."
    ),
    click.option(
        "--requestheader-client-ca-file",
        "proxy_ca",
        type=FILE,
        help="Authority of proxies that are believed what their headers say of the client.",
    ),
    *(
        click.option(
            f"--requestheader-{option}", name, multiple=True, callback=_listed, metavar="NAME,...", help=text
        )
        for option, name, text in _PROXY
    ),
    *(
        click.option(
            f"--oidc-{option}", name, default=default, show_default=bool(default), metavar=unit, help=text
        )
        for option, name, default, unit, text in _OIDC
    ),
    click.option("--oidc-ca-file", "oidc_ca", type=FILE, help="Whom the issuer's certificate must be of."),
    click.option(
        "--oidc-signing-algs",
        "oidc_algorithms",
        multiple=True,
        default=("RS256",),
        show_default=True,
        callback=_listed,
        metavar="NAME,...",
        help="How its tokens may be signed.",
    ),
    click.option(
        "--oidc-required-claim",
        "oidc_required",
        multiple=True,
        callback=_listed_pairs,
        metavar="CLAIM=VALUE,...",
        help="What its tokens must say.",
    ),
    click.option(
        "--authentication-token-webhook-config-file",
        "token_webhook",
        type=FILE,
        help="Ask the server of this kubeconfig whose the other tokens are.",
    ),
    click.option(
        "--authentication-token-webhook-cache-ttl",
        "token_webhook_ttl",
        type=Duration(),
        default="2m",
        show_default=True,
        metavar="DURATION",
        help="How long its answers are kept.",
    ),
    click.option(
        "--authentication-token-webhook-version",
        "token_webhook_version",
        type=click.Choice(["v1beta1", "v1"]),
        default="v1beta1",
        show_default=True,
        help="Version of the TokenReviews that it is sent.",
    ),
)
AUTHENTICATION_NAMES = (
    *("anonymous", "config_file", "token_file", "proxy_ca", *(name for _, name, _ in _PROXY)),
    *("oidc_ca", "oidc_algorithms", "oidc_required", *(name for _, name, *_ in _OIDC)),
    *("token_webhook", "token_webhook_ttl", "token_webhook_version"),
)
service_range = click.option(
    "--service-cluster-ip-range",
    "service_range",
    default="",
    metavar="SUBNET[,SUBNET]",
    help="Where services get their addresses, of IPv4 and perhaps IPv6, which pods have as well then.  "
    "[default: as before, or a free one]",
)
KUBECONFIG = click.Path(path_type=Path, exists=True, dir_okay=False)
kubeconfig = click.option(
    "--kubeconfig", type=KUBECONFIG, required=True, help="Which API server, whom to trust, who we are."
)


def _instance(context: click.Context, parameter: click.Parameter, value: Path) -> Instance:
    return Instance.at(value)


def _gates(context: click.Context, parameter: click.Parameter, text: str) -> Gates:
    try:
        return Gates.parse(text)
    except ValueError as error:
        raise click.UsageError(f'invalid argument "{text}" for "--feature-gates" flag: {error}') from error


def admission(command: Command) -> Command:
    """All options of admission, passed to the command together as `admission`, the arguments of
    `AdmissionOptions`."""

    @click.option(
        "--enable-admission-plugins",
        "enable",
        default="",
        metavar="NAME,...",
        help="Admission plugins besides the usual ones: any of kube-apiserver's.",
    )
    @click.option(
        "--disable-admission-plugins",
        "disable",
        default="",
        metavar="NAME,...",
        help="Usual admission plugins that are off.",
    )
    @click.option(
        "--admission-control-config-file",
        "file",
        type=FILE,
        help="What plugins are told: AdmissionConfiguration of apiserver.config.k8s.io/v1.",
    )
    @functools.wraps(command)
    def gathering(enable: str, disable: str, file: Path | None, **given: Any) -> Any:
        try:
            plugins = chosen_plugins(enable, disable)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return command(admission={"plugins": plugins, "file": file}, **given)

    wrapped: Command = gathering
    return wrapped


_data_dir = functools.partial(
    click.option,
    "--data-dir",
    "instance",
    type=click.Path(path_type=Path, file_okay=False),
    show_default=True,
    callback=_instance,
)
data_dir = _data_dir(
    default=DEFAULT_DATA_DIR,
    envvar="PODLING_DATA_DIR",
    is_eager=True,
    help="Where this podling keeps everything; podlings with different directories live side by side.",
)
node_dir = _data_dir(
    default=DEFAULT_NODE_DIR,
    help="Where the node keeps its pods' files and its runtime; not an API server's directory.",
)

gates = click.option(
    "--feature-gates",
    "gates",
    default="",
    metavar="NAME=true|false,...",
    callback=_gates,
    help="Switch gates on or off; `podling feature-gates` lists them.",
)


ENCRYPTION = (
    click.option(
        "--encryption-provider-config",
        "keys",
        type=FILE,
        help="What is encrypted at rest, and with which keys: a file with an EncryptionConfiguration.",
    ),
    click.option(
        "--encryption-provider-config-automatic-reload",
        "reloads",
        type=click.BOOL,
        is_flag=False,
        flag_value=True,
        default=False,
        metavar="true|false",
        help="Take what that file says later, too.",
    ),
)


def encryption(command: Command) -> Command:
    """All options of encryption at rest, passed to the command together as `encryption`, the arguments of
    `EncryptionOptions`."""

    @functools.wraps(command)
    def checked(*, encryption: dict[str, Any], **given: Any) -> Any:
        if encryption["reloads"] and encryption["keys"] is None:
            flag = "--encryption-provider-config"
            raise click.UsageError(f"{flag}-automatic-reload must be set with {flag}")
        return command(encryption=encryption, **given)

    return together(checked, "encryption", ENCRYPTION, ("keys", "reloads"))


def authentication(command: Command) -> Command:
    """All options of authentication, passed to the command together as `authentication`, the arguments of
    `AuthenticationOptions`."""
    return together(command, "authentication", AUTHENTICATION, AUTHENTICATION_NAMES)


def authorization(command: Command) -> Command:
    """All options of authorization, passed to the command together as `authorization`, the arguments of
    `AuthorizationOptions`. Refuses what does not go together."""

    @functools.wraps(command)
    def checked(*, authorization: dict[str, Any], **given: Any) -> Any:
        said = {name: value for name, value in authorization.items() if value is not None}
        modes = said.pop("modes", None)
        if "steps_file" in said and (len(said) > 1 or modes is not None):
            others = "--authorization-mode or --authorization-webhook-* flags are defined"
            raise click.UsageError(f"--authorization-config can not be specified when {others}")
        try:
            chosen = read_modes(
                ",".join(DEFAULT_MODES) if modes is None else modes, webhook="access_webhook" in said
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        return command(authorization={"modes": chosen, **said}, **given)

    return together(checked, "authorization", AUTHORIZATION, AUTHORIZATION_NAMES)


class NamedPair(click.ParamType[tuple[Path, Path, Sequence[str]]]):
    """kube-apiserver's form: `CERTIFICATE,KEY[:NAME,…]`."""

    name = "pair"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> tuple[Path, Path, Sequence[str]]:
        files, _, names = str(value).partition(":")
        certificate, comma, key = files.partition(",")
        if not comma or not certificate or not key:
            self.fail("expected comma separated certificate and key file paths", parameter, context)
        return Path(certificate), Path(key), tuple(names.split(",")) if names else ()


def listed_names(context: click.Context, parameter: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


SERVING = (
    click.option(
        "--tls-cert-file",
        "certificate",
        type=FILE,
        help="What the server shows.  [default: made by itself]",
    ),
    click.option("--tls-private-key-file", "key", type=FILE, help="The key of that."),
    click.option(
        "--tls-sni-cert-key",
        "by_name",
        type=NamedPair(),
        multiple=True,
        metavar="CERTIFICATE,KEY[:NAME,...]",
        help="What it shows those who call it by such names, by those of the certificate if none are given.",
    ),
    click.option(
        "--client-ca-file",
        "client_ca",
        type=FILE,
        help="Authority of clients who are believed besides those of the data directory.",
    ),
    click.option(
        "--proxy-client-cert-file",
        "proxy_certificate",
        type=FILE,
        help="What API servers behind this one are shown.  [default: made by itself]",
    ),
    click.option("--proxy-client-key-file", "proxy_key", type=FILE, help="The key of that."),
    click.option(
        "--tls-min-version",
        "oldest",
        default="",
        metavar="VERSION",
        help="The oldest TLS it speaks: VersionTLS12, VersionTLS13.  [default: VersionTLS12]",
    ),
    click.option(
        "--tls-cipher-suites",
        "suites",
        default="",
        metavar="NAME,...",
        callback=listed_names,
        help="Cipher suites of TLS 1.2 that it offers, by their names in Go.  [default: OpenSSL's]",
    ),
)


def serving(command: Command) -> Command:
    """What the server shows and whom it believes, passed to the command together as `showing`, the arguments
    of `ServingOptions`."""

    @functools.wraps(command)
    def checked(*, showing: dict[str, Any], **given: Any) -> Any:
        certificate, key = showing.pop("certificate"), showing.pop("key")
        if (certificate is None) != (key is None):
            raise click.UsageError("--tls-cert-file and --tls-private-key-file go together")
        shown = None if certificate is None else (certificate, key)
        proxy = showing.pop("proxy_certificate"), showing.pop("proxy_key")
        if (proxy[0] is None) != (proxy[1] is None):
            raise click.UsageError("--proxy-client-cert-file and --proxy-client-key-file go together")
        if showing["oldest"] or showing["suites"]:
            from podling.process.tls import offer

            try:
                offer(showing["oldest"], showing["suites"])
            except ValueError as error:
                raise click.UsageError(str(error)) from error
        proxy_client = None if proxy[0] is None else proxy
        return command(showing={"shown": shown, "proxy_client": proxy_client, **showing}, **given)

    return together(checked, "showing", SERVING, SERVING_NAMES)


def in_flight(command: Command) -> Command:
    """All options of how many requests are answered at a time, passed to the command together as
    `in_flight`, the arguments of `InFlightLimits`. Refuses none at all where all share them."""

    @functools.wraps(command)
    def checked(*, in_flight: dict[str, Any], **given: Any) -> Any:
        if in_flight["is_fair"] and not (in_flight["reads"] or in_flight["writes"]):
            raise click.UsageError(
                "invalid configuration: MaxRequestsInFlight=0 and MaxMutatingRequestsInFlight=0; "
                "they must add up to something positive"
            )
        return command(in_flight=in_flight, **given)

    return together(checked, "in_flight", IN_FLIGHT, IN_FLIGHT_NAMES)


def together(
    command: Command, argument: str, given_by: Sequence[Callable[[Command], Command]], names: Sequence[str]
) -> Command:
    @functools.wraps(command)
    def gathering(**given: Any) -> Any:
        return command(**{argument: {name: given.pop(name) for name in names}}, **given)

    wrapped: Command = gathering
    for option in reversed(given_by):
        wrapped = option(wrapped)
    return wrapped


def secure_port(default: int) -> Callable[[Command], Command]:
    return click.option(
        "--secure-port",
        "port",
        type=click.IntRange(0, 65535),
        default=default,
        show_default=True,
        help="Where health is told on this machine, over HTTPS; 0 for nowhere.",
    )


leader_elect = click.option(
    "--leader-elect",
    "elects",
    type=click.BOOL,
    metavar="true|false",
    default=True,
    show_default=True,
    help="Whether of all that ask for the same Lease, podling's and Kubernetes' own, only one acts.",
)


def kubeconfig_in(file: str) -> Callable[[Command], Command]:
    """The option `--kubeconfig` of a part. Its default is the `file` that an API server has written into its
    data directory."""

    def found(context: click.Context, parameter: click.Parameter, given: Path | None) -> Path:
        path: Path = given or context.params["instance"].data_dir / file
        if not path.is_file():
            raise click.BadParameter(f"{str(path)!r} does not exist", param_hint="--kubeconfig")
        return path

    def both(command: Command) -> Command:
        option = click.option(
            "--kubeconfig",
            type=KUBECONFIG,
            callback=found,
            help=f"Which API server, whom to trust, who we are.  [default: {file} in the data directory]",
        )
        return data_dir(option(command))

    return both
