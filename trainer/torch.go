package trainer

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/norm"
)

// InitFromTorch is like InitFrom, for a .safetensors file of PyTorch: layers has the scope for each
// of the file's layers, as it is passed to the layer's function here.
//
//	trainer.InitFromTorch("resnet.safetensors", map[string]string{
//		"conv1": "/conv_0", // cnn.Convolution(scope.In("conv_0"), x)
//		"bn1":   "/norm_0", // cnn.BatchNorm(scope.In("norm_0"), x)
//		"fc":    "",        // Leave it out.
//	}, "/conv_0", "/norm_0")
//
// It converts Linear, Conv1d to Conv3d, BatchNorm and LayerNorm to GoMLX's layers or those of
// package cnn. A file doesn't say whether a weight is that of a Conv2d or of a ConvTranspose2d: for
// the latter, add transposed_conv to the scope that cnn.TransposedConvolution is given, as in
// "up": "/up_0/transposed_conv". InitFromNames converts others, such as a Linear after a Flatten
// (see TorchFlattened) or an Embedding; both can be used for one file, for different scopes. A
// network with other numbers than PyTorch's defaults needs them here too: see docs/lightning.md.
//
// A layer without a scope is left out, with its sublayers; the name "" leaves out all that have no
// other name. With a scope, it is the only layer of a file without names, such as a Linear's.
// Otherwise layers must have the names of the file's layers, or New fails and lists the
// difference.
func InitFromTorch(path string, layers map[string]string, scopes ...string) Option {
	return initFromForeign("InitFromTorch "+path, path, scopes, func(file map[string]*tensors.Tensor) (map[string]Target, error) {
		return torchTargets(file, layers)
	})
}

// torchTargets returns the target of each tensor whose layer is not left out.
func torchTargets(file map[string]*tensors.Tensor, layers map[string]string) (map[string]Target, error) {
	found, used := map[string]Target{}, map[string]bool{"": true}
	var missing, unexpected []string
	for _, name := range slices.Sorted(maps.Keys(file)) {
		layer, parameter := layerOf(name)
		key, ok := longestKey(layer, func(key string) bool {
			scope, ok := layers[key]
			return ok && (key == layer || scope == "")
		})
		used[key] = true
		switch {
		case !ok:
			unexpected = append(unexpected, name)
		case layers[key] != "":
			scope, transposed := layers[key], path.Base(layers[key]) == torchTransposed.scope
			if transposed {
				scope = path.Dir(scope)
			}
			to, ok := torchTarget(file, layer, parameter, transposed)
			if !ok {
				return nil, fmt.Errorf("%s, %s: it is no parameter of a Linear, Conv, ConvTranspose2d, BatchNorm or LayerNorm: leave out %q here, and use InitFromNames for it", name, file[name].Shape(), layer)
			}
			found[name] = Target{Variable: path.Join(scope, to.Variable), Layout: to.Layout}
		}
	}
	for layer, scope := range layers {
		if !used[layer] {
			missing = append(missing, strings.TrimSuffix(layer+" for "+scope, " for "))
		}
	}
	return found, unmatched(file, missing, unexpected)
}

// layerOf divides the name of a tensor: "block.0.fc.weight" is the weight of block.0.fc.
func layerOf(name string) (layer, parameter string) {
	dot := strings.LastIndexByte(name, '.')
	return name[:max(0, dot)], name[dot+1:]
}

// torchLayer says what a layer's parameters become.
type torchLayer struct {
	scope  string            // Of GoMLX's layer, below the one that it is given.
	names  map[string]string // GoMLX's names.
	weight Layout
}

var (
	torchBatchNorm = torchLayer{norm.BatchNormalizationScopeName, map[string]string{
		"weight": "scale", "bias": "offset", "running_mean": "mean", "running_var": "variance", "num_batches_tracked": "avg_weight",
	}, nil}
	torchLayerNorm = torchLayer{"layer_normalization", map[string]string{"weight": "gain", "bias": "offset"}, nil}
	torchLinear    = torchLayer{"dense", map[string]string{"weight": "weights", "bias": "biases"}, TorchLinear}
	torchConv      = torchLayer{"conv", map[string]string{"weight": "weights", "bias": "biases"}, TorchConv}

	torchTransposed = torchLayer{"transposed_conv", map[string]string{"weight": "weights", "bias": "biases"}, TorchConvTranspose}
)

// torchTarget returns the target of a layer's parameter, below the layer's scope. The layer's other
// parameters show what it is, unless it is a transposed convolution.
func torchTarget(file map[string]*tensors.Tensor, layer, parameter string, transposed bool) (to Target, ok bool) {
	prefix := layer + "."
	if layer == "" { // The file has a single layer: "weight", "bias".
		prefix = ""
	}
	kind, mean, weight := torchConv, file[prefix+"running_mean"], file[prefix+"weight"]
	switch {
	case transposed:
		kind = torchTransposed
	case mean != nil:
		kind = torchBatchNorm
	case weight == nil:
		return to, false
	case weight.Rank() == 1:
		kind = torchLayerNorm
	case weight.Rank() == 2:
		kind = torchLinear
	}
	name, ok := kind.names[parameter]
	to.Variable = path.Join(kind.scope, name)
	switch parameter {
	case "weight":
		to.Layout = kind.weight
	case "num_batches_tracked":
		if ok {
			to.Layout = torchCount(mean.Size())
		}
	}
	return to, ok
}
