"""bench/tilewright_library.py: the library's C interface for the benchmarks: a plan for one problem, run on addresses."""
import ctypes
import json

DTYPES = {"float32": 0, "bfloat16": 1, "float16": 2}


class Operand(ctypes.Structure):
    _fields_ = [("given", ctypes.c_int32), ("alignment_bytes", ctypes.c_int32), ("batch", ctypes.c_int64),
                ("token", ctypes.c_int64), ("head", ctypes.c_int64), ("dim", ctypes.c_int64)]


class Lengths(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("on_device", ctypes.c_int32), ("max_tokens", ctypes.c_int64),
                ("total_tokens", ctypes.c_int64)]


class Spec(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("batch", ctypes.c_int64), ("heads", ctypes.c_int64),
                ("kv_heads", ctypes.c_int64), ("q_lengths", Lengths), ("kv_lengths", Lengths),
                ("qk_dim", ctypes.c_int64), ("v_dim", ctypes.c_int64), ("dtype", ctypes.c_int32),
                ("o_dtype", ctypes.c_int32), ("q", Operand), ("k", Operand), ("v", Operand), ("o", Operand),
                ("scale", ctypes.c_double), ("softcap", ctypes.c_double), ("causal", ctypes.c_int32),
                ("rest", ctypes.c_byte * 128)]  # The fields after these keep their defaults.


class PlanOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("device", ctypes.c_char_p), ("q_rows", ctypes.c_int64),
                ("kv_rows", ctypes.c_int64), ("schedule", ctypes.c_int32), ("deterministic", ctypes.c_int32),
                ("batch_invariant", ctypes.c_int32), ("reserved", ctypes.c_int32), ("workers", ctypes.c_int64),
                ("kv_splits", ctypes.c_int64), ("isa", ctypes.c_char_p)]


class Tensors(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("q", ctypes.c_void_p), ("k", ctypes.c_void_p),
                ("v", ctypes.c_void_p), ("o", ctypes.c_void_p), ("lse", ctypes.c_void_p),
                ("rest", ctypes.c_void_p * 5)]


class RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("workspace", ctypes.c_void_p),
                ("workspace_bytes", ctypes.c_size_t), ("executor", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


def strided(tensor):
    """Shape [batch, heads, tokens, dim] and strides in elements, of whatever has both, as torch's tensors."""
    return tuple(tensor.shape), tuple(tensor.stride())


class Attention:
    """One problem's plan. q, k, v and o are (shape, strides) pairs, as of strided()."""

    def __init__(self, library, q, k, v, o, dtype, causal=False, alignment_bytes=0, **options):
        self.library = library
        spec = library.default(Spec, "attention_spec")
        spec.batch, spec.heads, spec.q_lengths.max_tokens, spec.qk_dim = q[0]
        _, spec.kv_heads, spec.kv_lengths.max_tokens, spec.v_dim = v[0]
        spec.dtype = DTYPES[dtype]
        spec.causal = int(causal)
        for name, (_, strides) in (("q", q), ("k", k), ("v", v), ("o", o)):
            operand = getattr(spec, name)
            operand.given = 1
            operand.alignment_bytes = alignment_bytes
            operand.batch, operand.head, operand.token, operand.dim = strides
        chosen = library.default(PlanOptions, "plan_options")
        for name, value in options.items():
            setattr(chosen, name, value)
        self.plan = ctypes.c_void_p()
        library.call("plan_create", ctypes.byref(spec), ctypes.byref(chosen), ctypes.byref(self.plan))

    def __del__(self):
        self.library.c.tilewright_plan_destroy(self.plan)

    @property
    def text(self):
        """What the plan chose, in a line."""
        lines = self.library.c.tilewright_plan_text(self.plan).decode().split("\n")
        return next(line.removeprefix("plan").strip() for line in lines if line.startswith("plan "))

    @property
    def json(self):
        return json.loads(self.library.c.tilewright_plan_json(self.plan).decode())

    @property
    def workspace_bytes(self):
        return self.library.c.tilewright_plan_workspace_bytes(self.plan)

    def prepare(self):
        self.library.call("prepare", self.plan)

    def bound(self, q, k, v, o, workspace=None, stream=None):
        """A call without arguments that runs the plan on these addresses. The workspace is made ready once."""
        tensors = self.library.default(Tensors, "tensors")
        tensors.q, tensors.k, tensors.v, tensors.o = q, k, v, o
        options = self.library.default(RunOptions, "run_options")
        if workspace is not None:
            options.workspace, options.workspace_bytes, options.stream = workspace, self.workspace_bytes, stream
            self.library.call("init_workspace", self.plan, workspace, self.workspace_bytes, stream)
        run, check = self.library.c.tilewright_run, self.library.check
        arguments = self.plan, ctypes.byref(tensors), ctypes.byref(options)

        def call():
            check(run(*arguments))

        return call


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path)
        for name in ("error_text", "plan_json", "plan_text", "version_text"):
            getattr(self.c, "tilewright_" + name).restype = ctypes.c_char_p
        self.c.tilewright_plan_workspace_bytes.restype = ctypes.c_size_t
        self.c.tilewright_plan_workspace_bytes.argtypes = [ctypes.c_void_p]
        self.c.tilewright_plan_destroy.argtypes = [ctypes.c_void_p]
        self.c.tilewright_init_workspace.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                                     ctypes.c_void_p]

    def default(self, kind, name):
        """A struct with the library's own defaults."""
        value = kind()
        getattr(self.c, f"tilewright_{name}_init")(ctypes.byref(value))
        if value.struct_size > ctypes.sizeof(kind):
            raise RuntimeError(f"{kind.__name__} here has {ctypes.sizeof(kind)} bytes, the library's {value.struct_size}")
        return value

    def call(self, name, *arguments):
        self.check(getattr(self.c, "tilewright_" + name)(*arguments))

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.c.tilewright_error_text().decode())

    def attention(self, *operands, **options):
        return Attention(self, *operands, **options)

    @property
    def version(self):
        return self.c.tilewright_version_text().decode()
