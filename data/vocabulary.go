package data

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"gonbatch/internal/plural"
)

// Vocabulary maps the characters of texts to tokens, the numbers from 0 to Len()-1, and back.
type Vocabulary struct {
	characters []string       // By token.
	tokens     map[rune]int32 // By character; nil if the tokens are the bytes of a text.
}

// Characters returns a vocabulary of the characters that occur in a text, in the order of their
// Unicode numbers. The text must be UTF-8.
func Characters(text string) (*Vocabulary, error) {
	if text == "" {
		return nil, errors.New("data: a vocabulary of an empty text would have no characters")
	}
	if err := checkUTF8(text); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	seen := map[rune]bool{}
	for _, r := range text {
		seen[r] = true
	}
	v := &Vocabulary{tokens: map[rune]int32{}}
	for i, r := range slices.Sorted(maps.Keys(seen)) {
		v.characters, v.tokens[r] = append(v.characters, string(r)), int32(i)
	}
	return v, nil
}

func checkUTF8(text string) error {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], string(r)) {
			return fmt.Errorf("byte %d of the text, %#02x, is not UTF-8: use the vocabulary of data.Bytes", i, text[i])
		}
	}
	return nil
}

// Bytes returns the vocabulary of the 256 bytes, which has the tokens of any text.
func Bytes() *Vocabulary {
	v := &Vocabulary{characters: make([]string, 256)}
	for i := range v.characters {
		v.characters[i] = string([]byte{byte(i)})
	}
	return v
}

// Len returns the number of tokens.
func (v *Vocabulary) Len() int { return len(v.characters) }

// Encode returns the tokens of a text. A character that isn't in the vocabulary is an error.
func (v *Vocabulary) Encode(text string) ([]int32, error) {
	tokens, err := encode[int32](v, text)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	return tokens, nil
}

// encode returns tokens in a type that holds all of the vocabulary.
func encode[T uint8 | uint16 | int32](v *Vocabulary, text string) (tokensOf[T], error) {
	if v.tokens == nil {
		return converted[T]([]byte(text)), nil
	}
	if err := checkUTF8(text); err != nil {
		return nil, err
	}
	tokens := make(tokensOf[T], 0, utf8.RuneCountInString(text))
	for _, r := range text {
		token, ok := v.tokens[r]
		if !ok {
			return nil, fmt.Errorf("character %d of the text, %q, is not among the %s of the vocabulary", len(tokens), r, plural.Of(v.Len(), "character"))
		}
		tokens = append(tokens, T(token))
	}
	return tokens, nil
}

// Decode returns the text of tokens. A token that the vocabulary doesn't have is an error.
func (v *Vocabulary) Decode(tokens []int32) (string, error) {
	var text strings.Builder
	for i, token := range tokens {
		if token < 0 || int(token) >= v.Len() {
			return "", fmt.Errorf("data: token %d of the text is %d; the vocabulary has 0 to %d", i, token, v.Len()-1)
		}
		text.WriteString(v.characters[token])
	}
	return text.String(), nil
}
