// A module for tvm-ffi with one function, which creates a tensor as kernels do.

#include <tvm/ffi/container/shape.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

namespace {

tvm::ffi::Tensor Empty(tvm::ffi::Shape shape, DLDataType dtype, DLDevice device) {
  return tvm::ffi::Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, shape, dtype, device);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(empty, Empty);
