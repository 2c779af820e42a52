package trainer_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/models"
	"gonbatch/trainer"
)

// torchModel is a network of package models with the weights of one in PyTorch. Its file was
// written by testdata/writemodels.py.
type torchModel struct {
	file    string
	network func(*model.Scope, *graph.Node) *graph.Node
	option  func(path string) trainer.Option
}

var torchModels = []torchModel{
	{"resnet18", models.NarrowResNet18(10, 2), resNetOfTorch},
	{"vit", models.ViT(models.ViTConfig{ImageSize: 12, PatchSize: 4, Classes: 5, Layers: 2, Heads: 3, Width: 12}), viTOfTorch},
	{"gpt", models.GPT(models.GPTConfig{VocabSize: 20, ContextLength: 32, Layers: 2, Heads: 2, Width: 8}), gptOfTorch},
}

// resNetOfTorch names the layers of torchvision's resnet18, as the comment on ResNet18 does.
func resNetOfTorch(path string) trainer.Option {
	layers := map[string]string{"conv1": "/first", "bn1": "/first", "fc": "/logits", "example": ""}
	for stage := 1; stage <= 4; stage++ {
		for block := range 2 {
			there, here := fmt.Sprintf("layer%d.%d", stage, block), fmt.Sprintf("/stage_%d/block_%d", stage, block+1)
			for _, i := range []string{"1", "2"} {
				layers[there+".conv"+i], layers[there+".bn"+i] = here+"/conv"+i, here+"/conv"+i
			}
			if stage > 1 && block == 0 {
				layers[there+".downsample.0"], layers[there+".downsample.1"] = here+"/shortcut", here+"/shortcut"
			}
		}
	}
	return trainer.InitFromTorch(path, layers)
}

// denseOfTorch names the tensors of a Linear.
func denseOfTorch(there, here string) map[string]trainer.Target {
	return map[string]trainer.Target{
		there + ".weight": {Variable: here + "/weights", Layout: trainer.TorchLinear},
		there + ".bias":   {Variable: here + "/biases"},
	}
}

// normOfTorch names the tensors of a LayerNorm.
func normOfTorch(there, here string) map[string]trainer.Target {
	return map[string]trainer.Target{
		there + ".weight": {Variable: here + "/layer_normalization/gain"},
		there + ".bias":   {Variable: here + "/layer_normalization/offset"},
	}
}

// merged returns all targets.
func merged(all ...map[string]trainer.Target) map[string]trainer.Target {
	targets := map[string]trainer.Target{"example": {}}
	for _, some := range all {
		maps.Copy(targets, some)
	}
	return targets
}

// withoutFirst removes the first axis, whose size is 1.
func withoutFirst(t *tensors.Tensor) (*tensors.Tensor, error) {
	return tensors.FromFlatDataAndDimensions(tensors.MustCopyFlatData[float32](t), t.Shape().Dimensions[1:]...), nil
}

// viTOfTorch names the tensors of timm's ViTs, as the comment on ViT does.
func viTOfTorch(path string) trainer.Option {
	all := []map[string]trainer.Target{
		{"patch_embed.proj.weight": {Variable: "/patches/conv/weights", Layout: trainer.TorchConv}, "patch_embed.proj.bias": {Variable: "/patches/conv/biases"}},
		{"cls_token": {Variable: "/class", Layout: withoutFirst}, "pos_embed": {Variable: "/positions", Layout: withoutFirst}},
		normOfTorch("norm", "/last"), denseOfTorch("head", "/logits"),
	}
	for i := range 2 {
		there, here := fmt.Sprintf("blocks.%d", i), fmt.Sprintf("/layer_%d", i)
		all = append(all,
			normOfTorch(there+".norm1", here+"/attention"), denseOfTorch(there+".attn.qkv", here+"/attention/qkv"), denseOfTorch(there+".attn.proj", here+"/attention/projection"),
			normOfTorch(there+".norm2", here+"/mlp"), denseOfTorch(there+".mlp.fc1", here+"/mlp/hidden"), denseOfTorch(there+".mlp.fc2", here+"/mlp/projection"))
	}
	return trainer.InitFromNames(path, merged(all...))
}

// gptOfTorch names the tensors of the GPT, as the comment on GPT does.
func gptOfTorch(path string) trainer.Option {
	all := []map[string]trainer.Target{{"tokens.weight": {Variable: "/tokens/embeddings"}}, normOfTorch("last", "/last")}
	for i := range 2 {
		for _, part := range []struct{ name, first string }{{"attention", "qkv"}, {"mlp", "hidden"}} {
			there, here := fmt.Sprintf("%s.%d", part.name, i), fmt.Sprintf("/layer_%d/%s", i, part.name)
			all = append(all, normOfTorch(there+".norm", here), denseOfTorch(there+"."+part.first, here+"/"+part.first), denseOfTorch(there+".projection", here+"/projection"))
		}
	}
	return trainer.InitFromNames(path, merged(all...))
}

// TestModelsOfTorch: with the weights of PyTorch's networks, those of package models have their
// outputs.
func TestModelsOfTorch(t *testing.T) {
	for _, m := range torchModels {
		t.Run(m.file, func(t *testing.T) {
			path := "testdata/" + m.file + ".safetensors"
			examples, want := exampleOf(t, path)
			task := trainer.Supervised(m.network, loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.1})
			tr, _ := newTrainer(t, trainer.Config{BatchSize: 6}, task, m.option(path))
			checkOutputs(t, tr, examples, want)
		})
	}
}
