"""The command line: what train.py, diagnose.py, evaluate.py and predict.py share.

Hydra composes the configuration; mistakes in it are told in one line. Heavy imports stay inside the `main` of
each door, so that `--help`, `--cfg job` and completion answer at once.
"""

import functools
import logging
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import (
    ConfigCompositionException,
    HydraException,
    MissingConfigException,
    OverrideParseException,
)
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from hotloop.config import flat_items, nearest
from hotloop.errors import UserError
from hotloop.log_file import write_record

# Their values are file names or patterns, in which Hydra's grammar would see operators: = ( ) [ ] { } , : and spaces.
PATH_KEYS = re.compile(
    r"^\+{0,2}(?:[\w.]*\.)?(?:ckpt_path|input|output|score|source|reference|images|pattern|target|targets|valid_targets|test_targets"
    r"|dir|run_dir|cache_dir)$"
)


def open_door(main: Callable[[Any], Any], *, config_name: str, conf: Path) -> None:
    """Compose `conf/<config_name>.yaml` with the command line's overrides and call `main` with it.

    Exits with code 1 and one line on standard error for a user's mistake, with 130 after Ctrl-C.

    Args:
        main: takes the composed configuration.
        config_name: primary configuration.
        conf: folder of configurations.
    """
    # Without this Hydra prints its own version of every error and exits; here each is told once.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    OmegaConf.register_new_resolver("file_name", file_name, replace=True)
    flags = [arg for arg in sys.argv[1:] if arg in ("-m", "--multirun")]
    multirun = bool(flags)
    # Hydra's parser refuses a flag between overrides; anywhere is right for people.
    rest = [quote_path(arg, multirun=multirun) for arg in sys.argv[1:] if arg not in flags]
    sys.argv[1:] = flags[:1] + rest
    started = False

    @functools.wraps(main)
    def job(config: Any) -> Any:
        nonlocal started
        started = True
        try:
            return main(config)
        except BrokenPipeError:
            _reader_has_gone()
        except Exception as error:
            write_to_log_file(error)
            if multirun or not isinstance(error, UserError):
                raise
            remove_empty_run()
            # Leave at once: Hydra would add lines of its own to an exception that passes through it.
            _stop(str(error))

    try:
        hydra.main(version_base="1.3", config_path=str(conf), config_name=config_name)(job)()
    except UserError as error:
        _stop(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        _reader_has_gone()
    except (HydraException, OmegaConfBaseException, ValueError, OSError) as error:
        if started:
            raise
        _stop(explain(error, sys.argv[1:], conf=conf, config_name=config_name))


def remove_empty_run() -> None:
    """Take away the folder of a run that was refused before it began: it holds Hydra's notes and a log, no more."""
    folder = Path(HydraConfig.get().runtime.output_dir)
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.FileHandler):
            handler.close()
    content = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if content == {".hydra", f"{HydraConfig.get().job.name}.log"} and folder != Path.cwd():
        shutil.rmtree(folder, ignore_errors=True)


def write_to_log_file(error: Exception) -> None:
    """Put a failure into the log file of its run; the screen shows it in its own way."""
    record = logging.LogRecord("hotloop", logging.ERROR, __file__, 0, str(error), None, None)
    if not isinstance(error, UserError):
        record.exc_info = (type(error), error, error.__traceback__)
    write_record(record)


def _reader_has_gone() -> NoReturn:
    """End quietly when whoever read our output, `head` say, has left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(141)


def _stop(message: str) -> None:
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(1)


def file_name(text: str) -> str:
    """`text` as one component of a path: no separators, at most 120 characters."""
    return re.sub(r"[^\w.,=+-]+", "_", text)[:120]


def quote_path(argument: str, *, multirun: bool = False) -> str:
    """`argument`, its value quoted for Hydra if it is a file name that Hydra's grammar would misread."""
    key, equals, value = argument.partition("=")
    if not equals or argument.startswith("-") or not re.fullmatch(r"[+~]{0,2}[\w.@/:-]+", key):
        return argument
    if not value or value[0] in "'\"" or value == "null" or "${" in value:
        return argument
    parsed = _parses(argument)
    if key.lstrip("+") == "ckpt_path" and value[0] == "[" and value[-1] == "]" and not Path(value).exists():
        names = [name.strip() for name in value[1:-1].split(",")]
        typed_with_quotes = any(name[:1] in ("'", '"') for name in names)
        return argument if typed_with_quotes else f"{key}=[{','.join(map(_quoted, names))}]"
    if PATH_KEYS.match(key):
        if multirun and parsed and "," in value:
            return argument
        # A bare 123 or true would become a number or a boolean.
        plain = parsed and value[0] not in "[{" and re.fullmatch(r"[\w./@+-]*[a-zA-Z_/-][\w./@+-]*", value)
        return argument if plain and value.lower() not in ("true", "false") else f"{key}={_quoted(value)}"
    return argument


def _quoted(value: str) -> str:
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", value)
    trailing = len(escaped) - len(escaped.rstrip("\\"))
    return "'" + escaped + "\\" * trailing + "'"


def _parses(argument: str) -> bool:
    try:
        OverridesParser.create().parse_override(argument)
    except HydraException:
        return False
    return True


def option_names(group: str, conf: Path) -> list[str]:
    """The options of a configuration group: its files without `.yaml`; those with a leading _ are parts of others."""
    return sorted(path.stem for path in (conf / group).glob("[!_]*.yaml"))


def group_names(conf: Path) -> list[str]:
    return sorted(path.name for path in conf.iterdir() if path.is_dir() and any(path.glob("*.yaml")))


def explain(error: Exception, arguments: list[str], *, conf: Path, config_name: str) -> str:
    """One line for an error of Hydra or OmegaConf: the override at fault and the nearest valid names."""
    text = str(error)
    if isinstance(error, OSError) and error.filename:
        return f"cannot use {error.filename}: {error.strerror}; hydra.run.dir=FOLDER says where a run may write"
    if isinstance(error, OverrideParseException):
        value = next((a for a in arguments if not a.startswith("-") and not _parses(a)), text.splitlines()[0])
        return (
            f"cannot read {value!r}: write key=value; a value with spaces, commas or brackets needs quotes of "
            "its own inside the shell's: 'key=\"a, b\"'"
        )
    found = re.search(r"Could not find '([^']+)/([^']+)'", text)
    if found:
        group, option = found.groups()
        names = option_names(group, conf)
        if not names:
            return f"{group}={option}: there is no group {group}{nearest(group, group_names(conf))}"
        hint = nearest(option, names)
        hint = hint if "did you mean" in hint else ""
        return f"{group}={option}: no such option{hint} (choose from {', '.join(names)})"
    if "Config group override" in text:
        for argument in arguments:
            key, _, value = argument.partition("=")
            if (conf / key).is_dir() and value not in option_names(key, conf):
                return f"{key}={value}: choose one of {', '.join(option_names(key, conf))}"
    found = re.search(r"Could not (?:override|append|delete from config)[^']*'([^']+)'", text)
    if found or isinstance(error, ConfigCompositionException):
        key = found.group(1) if found else ""
        cause = error.__cause__
        if cause is not None and "is not in struct" not in str(cause):
            return f"{key}: {str(cause).splitlines()[0]}"
        if key:
            return f"{key}: no such key{_nearest_key(key, arguments, conf, config_name)}"
    if isinstance(error, MissingConfigException):
        return " ".join(text.split())
    return next((line for line in text.splitlines() if line.strip()), type(error).__name__)


def _nearest_key(key: str, arguments: list[str], conf: Path, config_name: str) -> str:
    """Suggestions for an unknown key, from the configuration that the other overrides compose."""
    groups = group_names(conf) if config_name in ("train", "diagnose") else []
    choices = [a for a in arguments if a.partition("=")[0] in groups]
    try:
        from hydra import compose, initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra

        GlobalHydra.instance().clear()
        with initialize_config_dir(str(conf), version_base="1.3"):
            composed = OmegaConf.to_container(compose(config_name, overrides=choices))
            names = [*(name for name, _ in flat_items(composed)), *groups]
    except Exception:
        names = groups
    parent, _, last = key.rpartition(".")
    siblings = [n for n in names if n.rpartition(".")[0] == parent]
    hint = nearest(key, siblings)
    if "did you mean" in hint:
        return hint
    same_name = sorted(n for n in names if n.rpartition(".")[2] == last)
    if same_name:
        return f"; did you mean {' or '.join(same_name[:3])}?"
    return nearest(key, names) or hint
