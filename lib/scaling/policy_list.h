// The one list of policies. A new one is a header and its name here. Those that scale tensors, not one loss, are in
// tensor_policies.h.
#ifndef SCALETRACE_SCALING_POLICY_LIST_H_
#define SCALETRACE_SCALING_POLICY_LIST_H_

#include <variant>

#include "scaling/apex.h"
#include "scaling/deepspeed.h"
#include "scaling/dynamic.h"
#include "scaling/fairseq.h"
#include "scaling/fixed_scales.h"
#include "scaling/jax.h"
#include "scaling/jax_step.h"
#include "scaling/megatron.h"
#include "scaling/mindspore.h"
#include "scaling/openseq2seq.h"
#include "scaling/other_public.h"
#include "scaling/paddle.h"
#include "scaling/pytorch.h"
#include "scaling/tensorflow.h"

namespace scaletrace {

// A key that ends in -fixed is its public neighbour without the bug that its summary names.
using Policy =
    std::variant<JaxStep, Dynamic, StaticScale, NoScaling, Schedule, Scripted, Pytorch, PytorchFixed, PytorchShardedCpu,
                 ApexAmp, ApexFp16Utils, ApexFp16UtilsFixed, ApexHysteresis, DeepSpeed, DeepSpeedFixed,
                 DeepSpeedFp16Optimizer, DeepSpeedFp16OptimizerFixed, Megatron, MegatronFixed, ColossalAi,
                 ColossalAiFixed, Fairseq, FairseqFixed, Metaseq, MetaseqFixed, Fairseq2, Fairseq2Fixed, Tf1Contrib,
                 TfDynamic, Keras, KerasFixed, Flax, FlaxFixed, Jmp, Mpx, MpxFixed, Paddle, PaddleOp, MindSporeManager,
                 MindSporeCell, MindSporeScaler, Mxnet, MxnetFixed, OpenSeq2SeqBackoff, OpenSeq2SeqLogMax,
                 OpenSeq2SeqLogMaxFixed, OnnxRuntime, BmTrain, BmTrainFixed, Chainer, FairscaleLayerwise,
                 FairscaleLayerwiseFixed, PopartAls, OptaxApplyIfFinite>;

}  // namespace scaletrace

#endif  // SCALETRACE_SCALING_POLICY_LIST_H_
