# Makes python_types.safetensors with the Python `safetensors` library (pip install safetensors
# numpy): one tensor of every dtype that numpy can say, a scalar, an empty tensor, metadata.
# Run once; committed.
import numpy as np
from safetensors.numpy import save_file

values = [0, 1, 2, 3, 100, 127]
tensors = {
    name: np.array(values, dtype=dtype).reshape(2, 3)
    for name, dtype in {
        "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16, "u32": np.uint32,
        "i32": np.int32, "u64": np.uint64, "i64": np.int64, "f16": np.float16,
        "f32": np.float32, "f64": np.float64,
    }.items()
}
tensors["bool"] = np.array([True, False, True])
tensors["scalar"] = np.array(-1.5, dtype=np.float32)
tensors["empty"] = np.zeros((0, 4), dtype=np.float32)
save_file(tensors, "python_types.safetensors", metadata={"made by": "safetensors", "note": "é"})
