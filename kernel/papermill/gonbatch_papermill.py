"""papermill's parameters as Go.

Importing this module registers the translator for the language "go"; papermill does that by itself
once the package is installed:

    papermill train.ipynb out.ipynb -p epochs 3 -p name "a run"

writes, after the cell tagged "parameters",

    // Parameters
    var epochs = 3
    var name = "a run"

The kernel "gonbatch" gives each variable the type that it had before, so 3 may be the value of a
float32.
"""

import json
import math
import re



def __getattr__(name):
    """Engine, the entry point, is papermill's own engine.

    papermill may ask for it while the import below is under way.
    """
    if name != "Engine":
        raise AttributeError(name)
    from papermill.engines import NBClientEngine

    return NBClientEngine


from papermill.translators import Translator, papermill_translators  # noqa: E402

IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")


class GoTranslator(Translator):
    """Writes values as Go."""

    @classmethod
    def translate_str(cls, val):
        # JSON escapes as Go does, but for surrogate pairs, which are written as they are.
        return json.dumps(val, ensure_ascii=False).replace("\x7f", "\\x7f")

    translate_escaped_str = translate_str

    @classmethod
    def translate_none(cls, val):
        raise ValueError("a Go variable cannot be None: leave the parameter out, or give it a value")

    @classmethod
    def translate_float(cls, val):
        if math.isfinite(val):
            return repr(float(val))
        return "math.NaN()" if math.isnan(val) else f"math.Inf({int(math.copysign(1, val))})"

    @classmethod
    def translate_list(cls, val):
        return f"[]{cls.type_of(val)}{{{', '.join(map(cls.translate, val))}}}"

    @classmethod
    def translate_dict(cls, val):
        pairs = (f"{cls.translate_str(str(key))}: {cls.translate(value)}" for key, value in val.items())
        return f"map[string]{cls.type_of(list(val.values()))}{{{', '.join(pairs)}}}"

    @classmethod
    def type_of(cls, values):
        """The Go type that all of the values have."""
        kinds = {type(value) for value in values}
        if kinds == {int, float}:
            return "float64"
        names = {bool: "bool", int: "int", float: "float64", str: "string"}
        if len(kinds) == 1:
            kind = kinds.pop()
            if kind in names:
                return names[kind]
            inner = {cls.nested(value) for value in values}
            if len(inner) == 1:
                return inner.pop()
        return "any"

    @classmethod
    def nested(cls, value):
        if isinstance(value, list):
            return "[]" + cls.type_of(value)
        if isinstance(value, dict):
            return "map[string]" + cls.type_of(list(value.values()))
        return "any"

    @classmethod
    def comment(cls, cmt_str):
        return f"// {cmt_str}".strip()

    @classmethod
    def assign(cls, name, str_val):
        if not IDENTIFIER.match(name):
            raise ValueError(f"parameter {name!r}: not the name of a Go variable")
        return f"var {name} = {str_val}"

    @classmethod
    def inspect(cls, parameters_cell):
        """The variables of the parameters cell: `submit params` knows them better."""
        from papermill.models import Parameter

        found = []
        for line in parameters_cell["source"].splitlines():
            match = re.match(r"\s*(?:var\s+|const\s+)?([^\W\d]\w*)(?:\s+([^=/]+?))?\s*=\s*(.*?)\s*(?://\s*(.*))?$", line)
            if match:
                name, kind, value, text = match.groups()
                found.append(Parameter(name, kind or "None", value, text or ""))
        return found


papermill_translators.register("go", GoTranslator)
papermill_translators.register("gonbatch", GoTranslator)
