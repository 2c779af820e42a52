package trainer

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Words in the names of metrics that say whether larger or smaller values are better. Words that
// say neither may follow: "accuracy_top5", "f1_score". After a negation nothing is known:
// "negative_log_likelihood".
var (
	moreIsBetter = strings.Fields(`acc accuracy ap auc auprc auroc bertscore bleu chrf cider correlation dice elbo f1 f2 fbeta fscore iou jaccard kappa
		likelihood map matthews mcc meteor miou mrr ndcg pearson precision psnr r2 recall reward rouge sensitivity spearman specificity ssim`)
	lessIsBetter = strings.Fields(`bpb bpc bpd brier cer crossentropy divergence ece eer err error fid hamming kid kl logloss loss lpips mae mape mse nll
		perplexity ppl regret rmse rmsle smape ter wer`)
	neither = strings.Fields(`at average avg class coefficient epoch index k l macro mean micro rate score sum top total weighted`)
	negated = strings.Fields(`false inverse inverted minus neg negative no non not`)
)

// modeOf returns "max" or "min" for a metric with a well-known name, such as "val/accuracy_top5" or
// "val/generator_loss", and "" for others.
func modeOf(metric string) string {
	name := strings.ToLower(metric[strings.LastIndexByte(metric, '/')+1:])
	name = strings.ReplaceAll(strings.ReplaceAll(name, "-", "_"), "cross_entropy", "crossentropy")
	parts := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	mode := ""
	for _, part := range parts {
		stem := strings.TrimRightFunc(part, unicode.IsDigit)
		switch {
		case slices.Contains(negated, part):
			return ""
		case slices.Contains(moreIsBetter, part) || slices.Contains(moreIsBetter, stem):
			mode = "max"
		case slices.Contains(lessIsBetter, part) || slices.Contains(lessIsBetter, stem):
			mode = "min"
		case stem != "" && !slices.Contains(neither, stem):
			mode = ""
		}
	}
	if mode == "max" && slices.Contains(parts, "loss") { // "loss_dice" of a detector.
		return "min"
	}
	return mode
}

func unknownMode(option, metric string) error {
	return fmt.Errorf("%s.mode: the name %q doesn't show whether higher is better: set the mode to max or min", option, metric)
}
