package images

import (
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
)

// loaded matches what ldd prints of a library: "libevent-2.1.so.7 => /lib/x86_64-linux-gnu/libevent-2.1.so.7 (0x...)",
// and of the loader: "/lib64/ld-linux-x86-64.so.2 (0x...)".
var loaded = regexp.MustCompile(`(?m)^\t(?:\S+ => )?(/\S+) \(0x`)

// libraries are the shared libraries that a program loads, and the loader; none for a static program.
func libraries(program string) ([]string, error) {
	file, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	defer func() { _ = file.Close() }()
	if file.Section(".interp") == nil {
		return nil, nil
	}
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, err)
	}
	var paths []string
	for _, match := range loaded.FindAllStringSubmatch(string(out), -1) {
		paths = append(paths, filepath.Clean(match[1]))
	}
	return paths, nil
}
