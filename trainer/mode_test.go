package trainer_test

import (
	"strings"
	"testing"

	"gonbatch/trainer"
)

// TestModes: what is best, according to the metric's name.
func TestModes(t *testing.T) {
	for mode, names := range map[string]string{
		"max": `val/accuracy val/digit_accuracy val/accuracy_top5 val/top_5_accuracy val/f1 val/f1_score val/macro_f1 val/iou val/mean_iou val/miou val/dice
			val/dice_coefficient val/bleu val/bleu_4 val/bleu4 val/rouge_l val/auc val/roc_auc val/precision_at_k val/map50 val/map_50_95 val/recall val/r2
			val/r2_score val/psnr val/ssim val/ndcg_10 val/log_likelihood val/reward val/mcc val/average_precision`,
		"min": `val/loss val/generator_loss val/dice_loss val/error val/error_rate val/word_error_rate val/mae val/mean_absolute_error val/rmse val/perplexity
			val/ppl val/wer val/cer val/fid val/nll val/cross_entropy val/kl_divergence val/brier_score val/accuracy_loss val/loss_dice train/loss`,
		"": `val/median val/squares val/negative_log_likelihood val/false_positive_rate val/accuracy_gap val/1_minus_accuracy val/entropy val/x val/ val/5`,
	} {
		for _, name := range strings.Fields(names) {
			// Without a mode in the configuration, the name decides.
			stopping := trainer.Config{EarlyStopping: trainer.EarlyStoppingConfig{Monitor: name}}
			best := trainer.Config{Checkpoint: trainer.CheckpointConfig{Monitor: name}}
			for option, c := range map[string]trainer.Config{"early_stopping": stopping, "checkpoint": best} {
				tr, err := trainer.New(world(t), c, blobTask(plainNet))
				if mode == "" {
					if err == nil || !strings.Contains(err.Error(), option+`.mode: the name "`+name+`" doesn't show whether higher is better: set the mode to max or min`) {
						t.Errorf("%s of %q: got %v, want to be asked", option, name, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s of %q: %v", option, name, err)
					continue
				}
				got := tr.Config().EarlyStopping.Mode
				if option == "checkpoint" {
					got = tr.Config().Checkpoint.Mode
				}
				if got != mode {
					t.Errorf("%s of %q: %q, want %q", option, name, got, mode)
				}
			}
		}
	}
}

// TestModeIsGiven: then the name may be anything; and if nothing is kept, no mode is needed.
func TestModeIsGiven(t *testing.T) {
	for name, c := range map[string]trainer.Config{
		"early stopping": {EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/median", Mode: "max"}},
		"checkpoint":     {Checkpoint: trainer.CheckpointConfig{Monitor: "val/median", Mode: "min"}},
		"off":            {Checkpoint: trainer.CheckpointConfig{Monitor: "val/median", Off: true}},
		"default":        {},
	} {
		if _, err := trainer.New(world(t), c, blobTask(plainNet)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
