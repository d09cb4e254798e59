package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Keep writes what was found to a file, as JSON. It makes the directory.
func Keep(path string, found any) error {
	content, err := json.MarshalIndent(found, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o644)
}

// Kept reads what Keep has written. It tells whether there is such a file: if there is none, nothing was found before.
func Kept(path string, found any) (bool, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := json.Unmarshal(content, found); err != nil {
		return true, fmt.Errorf("reading what was found before from %s: %w", path, err)
	}
	return true, nil
}
