package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Files that memcached reads (ssl_chain_cert, ssl_key and ssl_ca_cert). The certificate and its key are in one file, so
// that both are replaced at once.
const (
	pairFile = "pair.pem"
	caFile   = "ca.pem"
)

// store is the directory in memory from which memcached reads its certificate.
type store struct{ dir string }

// write replaces the files whose content differs, and reports whether there were any.
func (s store) write(c certificates) (hasChanged bool, err error) {
	for name, content := range map[string][]byte{pairFile: c.pair, caFile: c.ca} {
		path := filepath.Join(s.dir, name)
		before, err := os.ReadFile(path)
		if content == nil || err == nil && bytes.Equal(before, content) {
			continue
		}
		if err := errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path)); err != nil {
			return hasChanged, fmt.Errorf("storing the certificate: %w", err)
		}
		hasChanged = true
	}
	return hasChanged, nil
}
