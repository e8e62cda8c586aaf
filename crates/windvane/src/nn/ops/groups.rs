//! Products of many small matrices, group by group.

use super::fused;
use crate::nn::kernels::gemm::{Mat, MatMut, Start, gemm};
use crate::nn::kernels::par;
use crate::nn::kernels::pool::Buffer;
use crate::nn::kernels::simd::Level;
use burn::backend::Flex;
use burn::tensor::{DType, Shape, Tensor};
use burn_flex::{FlexTensor, Layout};

/// `a b` of every group, on top of `onto` if there is one.
pub(super) fn products(a: Tensor<3>, b: Tensor<3>, onto: Option<Tensor<3>>) -> Tensor<3> {
    let ([groups, rows, inner], [_, _, cols]) = (a.dims(), b.dims());
    let [a, b] = [a, b].map(|x| fused::rows(fused::primitive(x)));
    let mut out = Buffer::new(groups * rows * cols);
    let start = match onto {
        Some(onto) => {
            out.copy_from_slice(fused::values(&fused::rows(fused::primitive(onto))));
            Start::Add
        }
        None => Start::Zero,
    };
    let (a, b) = (fused::values(&a), fused::values(&b));
    par::chunks(&mut out, rows * cols, |group, out| {
        let a = Mat::new(&a[group * rows * inner..][..rows * inner], rows, inner);
        let b = Mat::new(&b[group * inner * cols..][..inner * cols], inner, cols);
        gemm(Level::current(), a, b, MatMut::new(out, rows, cols), start);
    });
    let layout = Layout::contiguous(Shape::from([groups, rows, cols]));
    Tensor::from_primitive::<Flex>(FlexTensor::new(out.into_bytes(), layout, DType::F32))
}
