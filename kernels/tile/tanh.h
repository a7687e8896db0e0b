// kernels/tile/tanh.h: tanh as a ratio of polynomials, plain arithmetic that host tests run too.
//
// tanh(x) = x p(x^2) / q(x^2), p and q of degree 4, fitted (our own weighted least squares, towards
// the least largest relative error) for |x| <= 8.8, where tanh is 1 to fp32's last bit. One
// special-function operation (the reciprocal of q) instead of an exponential and a reciprocal, and
// no cancellation: every coefficient is positive, so that the relative error stays within 5 units
// of roundoff below 1/2 and 8 anywhere. (1 - 2 / (exp(2x) + 1) keeps an absolute error only, which
// a softcap far above the scores turns into a relative one of cap / score.)
#pragma once

namespace tilewright::kernels {

/// What the argument is multiplied by first: a scale at which both polynomials lead with 1.
inline constexpr float kTanhScale = 0.017310445322349127f;

/// Greatest scaled argument; beyond it, the value at it is tanh.
inline constexpr float kTanhLimit = 0.1523f;

struct TanhRatio {
  float numerator;
  float denominator;
};

/// tanh = numerator / denominator, of kTanhScale * x, at most kTanhLimit in magnitude.
inline TanhRatio tanh_ratio(float scaled) {
  const float y = scaled * scaled;
  float p = y + 0.45588573813438416f;
  p = fmaf(p, y, 0.022987009957432747f);
  p = fmaf(p, y, 2.627677458804101e-4f);
  p = fmaf(p, y, 5.878648039470136e-7f);
  float q = y + 0.12522642314434052f;
  q = fmaf(q, y, 2.9393513686954975e-3f);
  q = fmaf(q, y, 1.5868661648710258e-5f);
  q = fmaf(q, y, 1.017620210319592e-8f);
  return {scaled * p, q};
}

}  // namespace tilewright::kernels
