"""bench/cuda_driver.py: the CUDA driver by its C interface: a context, memory, and how to wait. No torch, no toolkit."""
import ctypes


class Cuda:
    def __init__(self):
        self.driver = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        self.device = name.value.decode()

    def call(self, symbol, *arguments):
        result = getattr(self.driver, symbol)(*arguments)
        if result != 0:
            raise RuntimeError(f"{symbol} gave CUDA error {result}")

    def cleared(self, count):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(count))
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), ctypes.c_size_t(count))
        return address.value

    def wait(self):
        self.call("cuCtxSynchronize")
