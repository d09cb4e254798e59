package proof

import (
	"encoding/json"
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
