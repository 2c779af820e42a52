package rundir

import (
	"encoding/json"
	"fmt"
)

// ReadJSON reads a JSON file. Its errors name the file.
func ReadJSON(path string, into any) error {
	text, err := ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// WriteJSON atomically writes a JSON file that only its owner can read.
func WriteJSON(path string, value any) error {
	text, err := jsonText(value)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFileAtomic(path, text, 0o600)
}

// jsonText encodes a value as JSON that is readable for people too.
func jsonText(value any) ([]byte, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return append(text, '\n'), err
}
