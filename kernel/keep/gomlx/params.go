package gomlx

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/ml/model"
)

// paramsEntry is the metadata key of a store's hyperparameters.
const paramsEntry = "params"

// param is a hyperparameter: its path, and a box encoded with encoding/gob, which preserves its
// type.
type param struct{ Path, Box string }

// box holds the value of a hyperparameter.
type box struct{ Value any }

// encodeParams returns the hyperparameters of all scopes of a store as text.
func encodeParams(store *model.Store) (string, error) {
	all := []param{}
	for path, value := range store.IterParams() {
		var text bytes.Buffer
		if err := gob.NewEncoder(&text).Encode(box{value}); err != nil {
			return "", fmt.Errorf("the hyperparameter %s is a %T, which can't be kept: %w: use a number, a string, or a slice of these", path, value, err)
		}
		all = append(all, param{path, base64.StdEncoding.EncodeToString(text.Bytes())})
	}
	slices.SortFunc(all, func(a, b param) int { return cmp.Compare(a.Path, b.Path) })
	text, err := json.Marshal(all)
	return string(text), err
}

// decodeParams sets the hyperparameters that encodeParams encoded.
func decodeParams(store *model.Store, text string) error {
	var all []param
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return fmt.Errorf("its hyperparameters are damaged: %w", err)
	}
	for _, p := range all {
		encoded, err := base64.StdEncoding.DecodeString(p.Box)
		var b box
		if err == nil {
			err = gob.NewDecoder(bytes.NewReader(encoded)).Decode(&b)
		}
		if err != nil {
			return fmt.Errorf("the hyperparameter %s: %w", p.Path, err)
		}
		store.SetParam(p.Path, b.Value)
	}
	return nil
}
