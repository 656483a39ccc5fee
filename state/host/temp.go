package host

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"strings"
)

// TempName is a file name that no other run will use. A * in the pattern stands for what makes it
// its own.
func TempName(pattern string) string {
	before, after, _ := strings.Cut(pattern, "*")
	return fmt.Sprintf(".corpus-tmp-%s%016x%s", before, rand.Uint64(), after)
}

// TempFile makes a file in /tmp with the given content and a TempName. The caller removes it.
func (h *Host) TempFile(pattern string, content []byte, mode fs.FileMode) (string, error) {
	path := "/tmp/" + TempName(pattern)
	return path, h.Files.Write(path, NewFile{Content: bytes.NewReader(content), Mode: &mode, UID: -1, GID: -1})
}
