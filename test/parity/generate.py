"""Records PyTorch's results for the parity runner, from PyTorch's own operator and module samples.

Runs where PyTorch is installed and needs nothing else:

    python3 generate.py OUT [--max-cases N] [--only REGEX] [--leave-out N]

writes OUT/ops, OUT/modules, OUT/optim (a safetensors file each), OUT/lr_schedulers.json,
OUT/random.safetensors and OUT/checkpoints. A file's __metadata__.cases is a JSON list of cases that
name tensors of the same file. With --leave-out 4 every fourth case is not written, as in the
archive beside this file; so a second run can check with cases that nobody has seen.
"""
import argparse
import json
import os
import re
import struct
import sys
import types
import unittest
import warnings
import zlib

warnings.filterwarnings("ignore")

# PyTorch's test helpers import a package that only its own tests need.
_expecttest = types.ModuleType("expecttest")
_expecttest.TestCase = unittest.TestCase
_expecttest.assert_expected_inline = lambda *args, **kwargs: None
_expecttest.ACCEPT = False
sys.modules.setdefault("expecttest", _expecttest)

import torch  # noqa: E402

ARRAY_TYPES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16",
    torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
    torch.uint8: "U8", torch.bool: "BOOL",
}
LARGEST_TENSOR = 20_000
LEFT_OUT_OPERATORS = (
    "_refs", "_segment", "jiterator", "sparse", "_softmax_backward", "ops.", "_native_batch",
    "torch.ops", "signal.", "masked.", "to_sparse",
)


class Unsupported(Exception):
    """A sample that the format cannot hold or that gives no repeatable result."""


def name_of(constant):
    return str(constant).replace("torch.", "")


class Recorder:
    """The cases and tensors of one file."""

    def __init__(self):
        self.tensors, self.cases = {}, []

    def tensor(self, t):
        if t.device.type != "cpu" or t.layout != torch.strided or t.is_quantized:
            raise Unsupported(f"tensor {t.device} {t.layout}")
        if t.dtype not in ARRAY_TYPES and t.dtype not in (torch.complex64, torch.complex128):
            raise Unsupported(f"tensor {t.dtype}")
        if t.numel() > LARGEST_TENSOR:
            raise Unsupported("large")
        key = f"t{len(self.tensors)}"
        code = {"tensor": key, "dtype": name_of(t.dtype)}
        values = t.detach().resolve_conj().resolve_neg()
        if not values.is_contiguous() and values.numel() > 0:
            code["stride"] = list(values.stride())
        if values.is_complex():
            values = torch.view_as_real(values.contiguous())
            code["complex"] = True
        if t.requires_grad:
            code["requires_grad"] = True
        self.tensors[key] = values.contiguous().clone()
        return code

    def value(self, v):
        """The JSON encoding of an argument or a result."""
        if isinstance(v, torch.Tensor):
            return self.tensor(v)
        if v is None or isinstance(v, (bool, str)):
            return v
        if hasattr(v, "dtype") and hasattr(v, "item"):  # a NumPy scalar
            v = v.item()
        if isinstance(v, int):
            return v if abs(v) < 2**53 else {"int": str(v)}
        if isinstance(v, float):
            return {"float": repr(v)}
        if isinstance(v, complex):
            return {"complex": [repr(v.real), repr(v.imag)]}
        if isinstance(v, torch.dtype):
            return {"dtype": name_of(v)}
        if isinstance(v, torch.device):
            return {"device": str(v)}
        if isinstance(v, (torch.layout, torch.memory_format)):
            return {"enum": str(v)}
        if isinstance(v, slice):
            return {"slice": [v.start, v.stop, v.step]}
        if v is Ellipsis:
            return {"ellipsis": True}
        if isinstance(v, (list, tuple)):
            return [self.value(x) for x in v]
        if isinstance(v, dict):
            return {"dict": self.values(v)}
        raise Unsupported(str(type(v)))

    def values(self, items):
        return {key: self.value(v) for key, v in items.items()}

    def save(self, path, **metadata):
        if not self.cases:
            return
        named = set(re.findall(r'"tensor": "(t\d+)"', json.dumps(self.cases)))
        header, blobs, offset = {}, [], 0
        for key, t in self.tensors.items():
            if key not in named:
                continue
            flat = t.reshape(-1)
            raw = flat.view(torch.int16) if t.dtype == torch.bfloat16 else flat
            blob = raw.numpy().tobytes()
            end = offset + len(blob)
            header[key] = {"dtype": ARRAY_TYPES[t.dtype], "shape": list(t.shape),
                           "data_offsets": [offset, end]}
            blobs.append(blob)
            offset = end
        metadata.update(torch=torch.__version__,
                        cases=json.dumps(self.cases, separators=(",", ":")))
        header["__metadata__"] = {key: str(v) for key, v in metadata.items()}
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.writelines(blobs)


class Run:
    """What one call of this program was asked for, and what it could not record."""

    def __init__(self, options):
        self.out, self.limit, self.leave_out = options.out, options.max_cases, options.leave_out
        self.only = re.compile(options.only or "")
        self.skipped = []

    def path(self, *parts):
        return os.path.join(self.out, *parts)

    def is_left_out(self, index):
        return self.leave_out > 0 and index % self.leave_out == self.leave_out - 1

    def record(self, recorder, index, name, make_case):
        """Adds the case that `make_case` builds, or notes why there is none."""
        target = Recorder() if self.is_left_out(index) else recorder
        try:
            case = make_case(target)
            json.dumps(case)
            target.cases.append(case)
        except Exception as error:
            self.skipped.append((name, repr(error)[:120]))

    def spread(self, samples):
        """At most `limit` samples, evenly over the list."""
        if len(samples) <= self.limit:
            return samples
        last = (len(samples) - 1) / (self.limit - 1)
        return [samples[round(i * last)] for i in range(self.limit)]


def tensors_of(v):
    if isinstance(v, torch.Tensor):
        yield v
    elif isinstance(v, (list, tuple)):
        for x in v:
            yield from tensors_of(x)
    elif isinstance(v, dict):
        yield from tensors_of(list(v.values()))


def same(a, b):
    """Whether two results agree: what differs from call to call is no reference."""
    a, b = list(tensors_of(a)), list(tensors_of(b))
    if len(a) != len(b):
        return False
    wide = lambda t: t.detach().to(torch.complex128 if t.is_complex() else torch.float64)
    return all(
        x.shape == y.shape
        and (x.numel() == 0 or torch.allclose(wide(x), wide(y), equal_nan=True))
        for x, y in zip(a, b)
    )


def has_plain_gradient(op, sample, out):
    """Whether PyTorch's tests differentiate the result itself and not a function of it."""
    try:
        return sample.output_process_fn_grad(out) is out
    except Exception:
        return True


def operator_case(op, sample, with_grad, recorder):
    call = lambda: op.op(sample.input, *sample.args, **sample.kwargs)
    case = {"args": recorder.value([sample.input, *sample.args]),
            "kwargs": recorder.values(sample.kwargs)}
    torch.manual_seed(1)
    out = call()
    torch.manual_seed(2)
    if not same(out, call()):
        raise Unsupported("random")
    case["out"] = recorder.value(out)
    if not with_grad:
        return case
    given = [sample.input, list(sample.args), sample.kwargs]
    inputs = [t for t in tensors_of(given) if t.requires_grad]
    outputs = [t for t in tensors_of(out) if t.requires_grad]
    if inputs and outputs and has_plain_gradient(op, sample, out):
        cotangents = [torch.randn(t.shape, dtype=t.dtype) for t in outputs]
        gradients = torch.autograd.grad(outputs, inputs, cotangents, allow_unused=True)
        case["grad_out"] = recorder.value(cotangents)
        case["grad_in"] = recorder.value(gradients)
    return case


def operator_samples(run, recorder, op, dtype, with_grad, limit):
    torch.manual_seed(zlib.crc32(op.name.encode()))
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=with_grad))
    except Exception as error:
        run.skipped.append((op.name, "samples: " + repr(error)[:100]))
        return
    full, run.limit = run.limit, min(limit, run.limit)
    for index, sample in enumerate(run.spread(samples)):
        run.record(recorder, index, op.name,
                   lambda target, s=sample: operator_case(op, s, with_grad, target))
    run.limit = full


def operator_errors(run, recorder, op):
    """Inputs that PyTorch refuses."""
    if op.error_inputs_func is None:
        return

    def case(target, sample):
        return {"args": target.value([sample.input, *sample.args]),
                "kwargs": target.values(sample.kwargs), "throws": True}

    try:
        for index, error in enumerate(op.error_inputs("cpu")):
            run.record(recorder, index, op.name,
                       lambda target, s=error.sample_input: case(target, s))
    except Exception as error:
        run.skipped.append((op.name, "error samples: " + repr(error)[:100]))


def record_operators(run):
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        full = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        if not run.only.search(full) or op.name.startswith(LEFT_OUT_OPERATORS):
            continue
        recorder = Recorder()
        dtypes, has_grad = op.supported_dtypes("cpu"), bool(op.supports_autograd)
        wide = [d for d in (torch.float64, torch.float32) if d in dtypes][:1]
        plan = [(d, has_grad, run.limit) for d in wide]
        plan += [(torch.int64, False, 4), (torch.bool, False, 3), (torch.complex128, has_grad, 4)]
        for dtype, with_grad, limit in plan:
            if dtype in dtypes:
                operator_samples(run, recorder, op, dtype, with_grad, limit)
        operator_errors(run, recorder, op)
        recorder.save(run.path("ops", full.replace("/", "_") + ".safetensors"), op=op.name,
                      variant=op.variant_test_name, inplace=bool(op.inplace_variant),
                      method=bool(op.method_variant))


def make_module(info, constructor):
    torch.manual_seed(5)
    if "dtype" in info.module_cls.__init__.__code__.co_varnames:
        kwargs = {**constructor.kwargs, "dtype": torch.float64}
        return info.module_cls(*constructor.args, **kwargs)
    return info.module_cls(*constructor.args, **constructor.kwargs).double()


def module_case(info, sample, training, recorder):
    constructor, forward = sample.constructor_input, sample.forward_input
    module = make_module(info, constructor).train(training)
    named = {k: v for k, v in constructor.kwargs.items() if k not in ("device", "dtype")}
    state = {k: v.clone() for k, v in module.state_dict().items()}
    case = {"init_args": recorder.value(list(constructor.args)),
            "init_kwargs": recorder.values(named), "training": training,
            "state": recorder.values(state), "args": recorder.value(list(forward.args)),
            "kwargs": recorder.values(forward.kwargs)}
    out = module(*forward.args, **forward.kwargs)
    module.load_state_dict(state)
    again = module(*forward.args, **forward.kwargs)
    if not same(out, again):
        raise Unsupported("random")
    case["out"] = recorder.value(out)
    buffers = dict(module.named_buffers())
    case["state_after"] = recorder.values({k: v for k, v in buffers.items() if k in state})
    inputs = [t for t in tensors_of([list(forward.args), forward.kwargs]) if t.requires_grad]
    parameters = dict(module.named_parameters())
    outputs = [t for t in tensors_of(again) if t.requires_grad]
    if outputs:
        cotangents = [torch.randn(t.shape, dtype=t.dtype) for t in outputs]
        gradients = torch.autograd.grad(outputs, [*inputs, *parameters.values()], cotangents,
                                        allow_unused=True)
        case["grad_out"] = recorder.value(cotangents)
        case["grad_in"] = recorder.value(gradients[: len(inputs)])
        case["grad_params"] = recorder.values(dict(zip(parameters, gradients[len(inputs):])))
    return case


def record_modules(run):
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        recorder = Recorder()
        for training in (True, False):
            try:
                torch.manual_seed(3)
                samples = list(info.module_inputs_func(
                    info, device="cpu", dtype=torch.float64, requires_grad=True,
                    training=training))
            except Exception as error:
                run.skipped.append((info.name, "samples: " + repr(error)[:100]))
                continue
            for index, sample in enumerate(run.spread(samples)):
                if sample.forward_input is not None:
                    run.record(recorder, index, info.name,
                               lambda target, s=sample: module_case(info, s, training, target))
        recorder.save(run.path("modules", info.name + ".safetensors"), module=info.name)


OPTIMIZERS = {
    "SGD": [{"lr": .1}, {"lr": .1, "momentum": .9}, {"lr": .1, "momentum": .9, "nesterov": True},
            {"lr": .1, "momentum": .9, "dampening": .2, "weight_decay": .1},
            {"lr": .1, "maximize": True}],
    "Adam": [{}, {"lr": .01, "betas": (.8, .99)}, {"lr": .01, "weight_decay": .1},
             {"lr": .01, "amsgrad": True}, {"lr": .01, "maximize": True},
             {"lr": .01, "eps": 1e-3}],
    "AdamW": [{}, {"lr": .01, "weight_decay": .1}, {"lr": .01, "amsgrad": True},
              {"lr": .01, "betas": (.9, .95)}],
    "NAdam": [{}, {"lr": .01, "momentum_decay": 6e-3},
              {"lr": .01, "weight_decay": .1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"lr": .01, "weight_decay": .1},
              {"lr": .01, "weight_decay": .1, "decoupled_weight_decay": True}],
    "Adamax": [{}, {"lr": .01, "weight_decay": .1}],
    "Adagrad": [{}, {"lr": .1, "lr_decay": .1},
                {"lr": .1, "weight_decay": .1, "initial_accumulator_value": .1}],
    "Adadelta": [{}, {"lr": .5, "rho": .8, "weight_decay": .1}],
    "RMSprop": [{}, {"lr": .01, "momentum": .9, "centered": True},
                {"lr": .01, "weight_decay": .1, "alpha": .9}],
    "Rprop": [{}, {"lr": .01, "etas": (.4, 1.3)}],
    "ASGD": [{}, {"lr": .1, "weight_decay": .1, "t0": 3}],
    "Adafactor": [{}, {"lr": .02, "weight_decay": .1}],
    "Muon": [{}, {"lr": .02, "weight_decay": .1}],
    "LBFGS": [{}, {"lr": .5, "history_size": 5, "line_search_fn": "strong_wolfe"}],
}
OPTIMIZER_STEPS = 8


def optimizer_case(name, index, options, recorder):
    """Eight steps on the loss sum((parameter - target)^4) over all parameters."""
    torch.manual_seed(11 + index)
    shapes = [(4, 3), (3, 5)] if name == "Muon" else [(4, 3), (5,), (2, 2, 3)]
    params = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    case = {"kwargs": recorder.values(options), "params": recorder.value(params)}
    targets = [torch.randn(s, dtype=torch.float64) for s in shapes]
    case["targets"] = recorder.value(targets)
    optimizer = getattr(torch.optim, name)(params, **options)

    def closure():
        optimizer.zero_grad()
        loss = sum(((p - t) ** 4).sum() for p, t in zip(params, targets))
        loss.backward()
        return loss

    case["after"] = []
    for _ in range(OPTIMIZER_STEPS):
        if name == "LBFGS":
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        case["after"].append(recorder.value(params))
    return case


def record_optimizers(run):
    for name, grid in OPTIMIZERS.items():
        if not hasattr(torch.optim, name):
            continue
        recorder = Recorder()
        for index, options in enumerate(grid):
            run.record(recorder, index, name,
                       lambda target, i=index, o=options: optimizer_case(name, i, o, target))
        recorder.save(run.path("optim", name + ".safetensors"), optimizer=name)


SCHEDULERS = [
    ("StepLR", {"step_size": 3, "gamma": .5}),
    ("MultiStepLR", {"milestones": [2, 5, 9], "gamma": .3}),
    ("ConstantLR", {"factor": .5, "total_iters": 4}),
    ("LinearLR", {"start_factor": .1, "total_iters": 6}),
    ("ExponentialLR", {"gamma": .9}),
    ("PolynomialLR", {"total_iters": 8, "power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 7, "eta_min": .01}),
    ("CosineAnnealingWarmRestarts", {"T_0": 4, "T_mult": 2}),
    ("CyclicLR", {"base_lr": .01, "max_lr": .1, "step_size_up": 4, "cycle_momentum": False}),
    ("CyclicLR", {"base_lr": .01, "max_lr": .1, "step_size_up": 3, "mode": "triangular2",
                  "cycle_momentum": False}),
    ("OneCycleLR", {"max_lr": .2, "total_steps": 20}),
    ("OneCycleLR", {"max_lr": .2, "total_steps": 20, "anneal_strategy": "linear",
                    "three_phase": True}),
    ("ReduceLROnPlateau", {"factor": .5, "patience": 2, "cooldown": 1}),
]
PLATEAU_METRICS = [1., .9, .95, .94, .93, .92, .91, .5] + 6 * [.6] + 5 * [.4]
BASE_LR = .1


def record_schedulers(run):
    rows = []
    for name, options in SCHEDULERS:
        parameter = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([parameter], lr=BASE_LR, momentum=.9)
        schedule = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
        metrics = PLATEAU_METRICS if name == "ReduceLROnPlateau" else None
        rates = [optimizer.param_groups[0]["lr"]]
        for metric in PLATEAU_METRICS:
            optimizer.step()
            schedule.step(*([metric] if metrics else []))
            rates.append(optimizer.param_groups[0]["lr"])
        row = {"scheduler": name, "kwargs": options, "base_lr": BASE_LR, "lrs": rates}
        rows.append({**row, **({"metrics": metrics} if metrics else {})})
    with open(run.path("lr_schedulers.json"), "w") as file:
        json.dump(rows, file, indent=1)


def record_random(run):
    """Draws of the CPU generator, number for number."""
    recorder = Recorder()

    def add(label, seed, draw, **parameters):
        torch.manual_seed(seed)
        recorder.cases.append(
            {"label": label, "seed": seed, **parameters, "out": recorder.value(draw())})

    for n in (1, 2, 5, 15, 16, 17, 24, 31, 100):
        for dtype in (torch.float32, torch.float64):
            named = {"size": [n], "dtype": name_of(dtype)}
            add("rand", 42, lambda: torch.rand(n, dtype=dtype), **named)
            add("randn", 42, lambda: torch.randn(n, dtype=dtype), **named)
    for low, high, n in ((0, 100, 50), (-5, 2**40, 20)):
        add("randint", 7, lambda: torch.randint(low, high, (n,)), low=low, high=high, size=[n])
    for n in (1, 2, 10, 100):
        add("randperm", 9, lambda: torch.randperm(n), n=n)
    empty = lambda: torch.empty(20)
    weights = [.1, .2, .3, .4]
    add("bernoulli", 3, lambda: torch.bernoulli(torch.full((40,), .3)), p=.3, size=[40])
    add("normal", 4, lambda: empty().normal_(1.5, 2.0), mean=1.5, std=2.0, size=[20])
    add("uniform", 4, lambda: empty().uniform_(-2, 3), low=-2, high=3, size=[20])
    add("exponential", 4, lambda: empty().exponential_(1.5), lambd=1.5, size=[20])
    add("dropout", 5, lambda: torch.nn.functional.dropout(torch.ones(40), .25, True),
        p=.25, size=[40])
    for n, replacement in ((20, True), (3, False)):
        add("multinomial", 6, lambda: torch.multinomial(torch.tensor(weights), n, replacement),
            weights=weights, num_samples=n, replacement=replacement)
    nn = torch.nn
    add("Linear.weight", 0, lambda: nn.Linear(10, 5).weight.detach(),
        in_features=10, out_features=5)
    add("Conv2d.weight", 0, lambda: nn.Conv2d(3, 8, 3).weight.detach(), init=[3, 8, 3])
    add("Embedding.weight", 0, lambda: nn.Embedding(10, 4).weight.detach(), init=[10, 4])
    add("LSTM.weight_ih_l0", 0, lambda: nn.LSTM(4, 3).weight_ih_l0.detach(), init=[4, 3])
    recorder.save(run.path("random.safetensors"))


def record_checkpoints(run):
    """Files of torch.save: all types, views of one storage, a training state, both formats."""
    folder = run.path("checkpoints")
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    torch.save({
        "f32": base, "row": base[1], "t": base.t(), "bf16": base.bfloat16(), "f16": base.half(),
        "i64": torch.tensor([1, -2, 3]), "bool": torch.tensor([True, False]),
        "f64": base.double(), "u8": torch.tensor([0, 255], dtype=torch.uint8),
        "scalar": torch.tensor(3.5),
        "nested": {"lr": .1, "steps": [1, 2, 3], "name": "adam", "flag": True, "none": None,
                   "tup": (1, 2.5)},
        "c64": torch.tensor([1 + 2j]),
    }, os.path.join(folder, "tensors.pt"))
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                          nn.Linear(4 * 6 * 6, 10))
    x = torch.randn(2, 1, 8, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model(x).sum().backward()
    optimizer.step()
    model.eval()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "x": x,
                "y": model(x).detach()}, os.path.join(folder, "cnn_training_state.pt"))
    torch.save(model.state_dict(), os.path.join(folder, "cnn_legacy_format.pt"),
               _use_new_zipfile_serialization=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--max-cases", type=int, default=12)
    parser.add_argument("--only", help="record only the operators that fit this expression")
    parser.add_argument("--leave-out", type=int, default=0, metavar="N")
    options = parser.parse_args()
    run = Run(options)
    os.makedirs(run.out, exist_ok=True)
    record_operators(run)
    if not options.only:
        for record in (record_modules, record_optimizers, record_schedulers, record_random,
                       record_checkpoints):
            record(run)
    with open(run.path("skipped.json"), "w") as file:
        json.dump(run.skipped, file, indent=0)
    print(f"{len(run.skipped)} samples skipped, listed in skipped.json")


if __name__ == "__main__":
    main()
