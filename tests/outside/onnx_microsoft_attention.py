"""Random cases of the attention operators of com.microsoft, for onnx_microsoft.py."""

import numpy as np

from onnx_microsoft_case import Case
from onnx_microsoft_quantized import codes, scale, trimmed, zero


def masks(c, b, s, past, one_axis=True):
    """A mask as Attention takes it; every row keeps a key."""
    r, total = c.r, past + s
    kind = r.pick(["none", "keys", "pairs"] + (["ends", "both"] if one_axis else ["ends"]))
    if kind == "none":
        return ""
    if kind == "ends":
        return c.input(r.g.integers(1, total + 1, [b]).astype(np.int32))
    if kind == "both":
        ends = r.g.integers(1, total + 1, [b])
        starts = [r.whole(0, int(e) - 1) for e in ends]
        return c.input(np.concatenate([ends, starts]).astype(np.int32))
    shape = [b, total] if kind == "keys" else [b, s, total]
    mask = r.g.integers(0, 2, shape).astype(np.int32)
    mask[..., 0] = 1
    return c.input(mask)


def bias_of_scores(c, b, n, s, total):
    if not c.r.chance(0.3):
        return ""
    return c.input(c.r.values([c.r.pick([1, b]), c.r.pick([1, n]), s, total]))


def attention(r):
    c = Case(r, rtol=1e-3, atol=1e-4)
    b, s, n, width = r.whole(1, 2), r.whole(1, 5), r.whole(1, 3), r.whole(1, 8)
    h = r.pick([2, 4, 8])
    past = r.whole(1, 3) if r.chance(0.3) else 0
    v = n * r.pick([1, 3, 5]) if not past and r.chance(0.3) else n * h
    d = n * h
    inputs = [c.input(r.values([b, s, width])), c.constant(r.values([width, 2 * d + v], scale=0.5)),
              c.constant(r.values([2 * d + v])) if r.chance(0.7) else "", masks(c, b, s, past),
              c.input(r.values([2, b, n, past, h])) if past else "",
              bias_of_scores(c, b, n, s, past + s)]
    c.node("Attention", trimmed(inputs), [np.float32] * (2 if past else 1), num_heads=n,
           qkv_hidden_sizes=[d, d, v] if v != d else r.pick([None, [d, d, v]]),
           unidirectional=r.pick([None, 0, 1]), scale=r.pick([None, 0.3]),
           mask_filter_value=r.pick([None, -500.0]))
    return c


def q_attention(r):
    c = Case(r, rtol=1e-3, atol=1e-3)
    t, w = np.uint8, r.pick([np.uint8, np.int8])
    b, s, n, width = r.whole(1, 2), r.whole(1, 5), r.whole(1, 3), r.whole(1, 8)
    h = r.pick([2, 4, 8])
    past = r.whole(1, 3) if r.chance(0.3) else 0
    d = n * h
    per = [3 * d] if r.chance(0.5) else []
    inputs = [c.input(codes(r, [b, s, width], t)), c.constant(codes(r, [width, 3 * d], w)),
              c.constant(r.values([3 * d])), scale(c, 0.01, 0.02),
              c.constant((r.g.random(per) * 0.01 + 0.005).astype(np.float32)), masks(c, b, s, past),
              zero(c, t), c.constant(np.full(per, 3, w)),
              c.input(r.values([2, b, n, past, h])) if past else ""]
    c.node("QAttention", trimmed(inputs), [np.float32] * (2 if past else 1), num_heads=n,
           unidirectional=r.pick([None, 0, 1]), scale=r.pick([None, 0.3]),
           mask_filter_value=r.pick([None, -500.0]))
    return c


def multi_head(r):
    c = Case(r, rtol=1e-3, atol=1e-4)
    b, s, n, h = r.whole(1, 2), r.whole(1, 5), r.whole(1, 3), r.pick([2, 4, 8])
    # Packed inputs have no kernel for CPUs in ONNX Runtime, and are skipped.
    kind = r.pick(["plain", "plain", "plain", "heads", "heads", "packed", "packed_kv"])
    keys = s if kind == "packed" else r.whole(1, 5)
    wide = n * (h if kind in ("packed", "packed_kv") else r.pick([h, 3]))
    past = r.whole(1, 3) if kind == "plain" and r.chance(0.4) else 0
    if past:
        wide = n * h
    d = n * h
    by_heads = lambda width: c.input(r.values([b, n, keys, width // n]))
    if kind == "packed":
        inputs = [c.input(r.values([b, s, n, 3, h])), "", ""]
    elif kind == "packed_kv":
        inputs = [c.input(r.values([b, s, d])), c.input(r.values([b, keys, n, 2, h])), ""]
    elif kind == "heads":
        inputs = [c.input(r.values([b, s, d])), by_heads(d), by_heads(wide)]
    else:
        inputs = [c.input(r.values([b, s, d])), c.input(r.values([b, keys, d])),
                  c.input(r.values([b, keys, wide]))]
    biased = r.chance(0.5) and kind in ("plain", "heads")
    inputs.append(c.constant(r.values([2 * d + wide])) if biased else "")
    mask = ""
    if r.chance(0.5):
        which = r.pick(["keys", "pairs", "ends"] if not past else ["keys", "pairs"])
        total = past + keys
        if which == "ends":
            mask = c.input(r.g.integers(1, keys + 1, [b]).astype(np.int32))
        else:
            made = r.g.integers(0, 2, [b, total] if which == "keys" else [b, s, total])
            made[..., 0] = 1
            mask = c.input(made.astype(np.int32))
    inputs += [mask, bias_of_scores(c, b, n, s, past + keys)]
    if past:
        inputs += [c.input(r.values([b, n, past, h])), c.input(r.values([b, n, past, h]))]
    outputs = [np.float32] * (3 if past or kind == "plain" and r.chance(0.3) else 1)
    c.node("MultiHeadAttention", trimmed(inputs), outputs, num_heads=n,
           unidirectional=r.pick([None, 0, 1]), scale=r.pick([None, 0.3]),
           mask_filter_value=r.pick([None, -500.0]))
    return c


def group_query(r):
    c = Case(r, rtol=1e-3, atol=1e-4)
    kv = r.whole(1, 2)
    n, h = kv * r.whole(1, 3), r.pick([16, 32])
    prompt = r.chance(0.5)
    b = r.whole(1, 2)
    past = 0 if prompt else r.whole(1, 4)
    s = r.whole(1, 5) if prompt or b == 1 else 1
    total = past + s
    rotary = r.chance(0.5)
    if r.chance(0.4):
        inputs = [c.input(r.values([b, s, (n + 2 * kv) * h])), "", ""]
    else:
        inputs = [c.input(r.values([b, s, n * h])), c.input(r.values([b, s, kv * h])),
                  c.input(r.values([b, s, kv * h]))]
    room = past if not prompt else 0
    inputs += [c.input(r.values([b, kv, room, h])) if room else "",
               c.input(r.values([b, kv, room, h])) if room else ""]
    lengths = np.full([b], total - 1)
    if not prompt and b > 1:  # samples with less of a past
        lengths[1:] -= r.whole(0, past - 1)
    inputs += [c.input(lengths.astype(np.int32)), c.input(np.int32(total))]
    half = h // 2 if not r.chance(0.3) else h // 4
    if rotary:
        angles = r.g.random([total + 3, half]).astype(np.float32) * 6
        inputs += [c.constant(np.cos(angles)), c.constant(np.sin(angles))]
    else:
        inputs += ["", ""]
    inputs.append(c.input(r.g.integers(0, total + 3, [b, s]))
                  if rotary and r.chance(0.3) else "")
    inputs.append(c.input(r.values([r.pick([1, b]), r.pick([1, n]), s, total]))
                  if r.chance(0.3) else "")
    inputs.append(c.input(r.values([n])) if r.chance(0.25) else "")
    c.node("GroupQueryAttention", trimmed(inputs), [np.float32] * 3, num_heads=n, kv_num_heads=kv,
           do_rotary=int(rotary), rotary_interleaved=r.pick([None, 0, 1]),
           scale=r.pick([None, 0.3]), softcap=r.pick([None, 0.0, 3.0]),
           local_window_size=r.pick([None, -1, 2]), smooth_softmax=r.pick([None, 0, 1]))
    return c


def rotary(r):
    c = Case(r)
    b, s, n, h = r.whole(1, 2), r.whole(1, 4), r.whole(1, 3), r.pick([4, 8, 16])
    turned = r.pick([0, 0, h // 2])
    half = (turned or h) // 2
    angles = r.g.random([9, half]).astype(np.float32) * 6
    where = c.input(np.asarray([r.whole(0, 3)])) if r.chance(0.4) else \
        c.input(r.g.integers(0, 9, [b, s]))
    x = [b, n, s, h] if r.chance(0.4) else [b, s, n * h]
    c.node("RotaryEmbedding", [c.input(r.values(x)), where, c.constant(np.cos(angles)),
                               c.constant(np.sin(angles))],
           interleaved=r.pick([None, 0, 1]), rotary_embedding_dim=turned or None,
           num_heads=n if turned or r.chance(0.3) else None, scale=r.pick([None, 1.0]))
    return c


ATTENTION = {
    "Attention": attention,
    "QAttention": q_attention,
    "MultiHeadAttention": multi_head,
    "GroupQueryAttention": group_query,
    "RotaryEmbedding": rotary,
}
