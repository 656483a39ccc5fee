package host

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
)

// TempFile makes a file with the given content that no other run will use. A * in the pattern
// stands for what makes its name its own. The caller removes it.
func (h *Host) TempFile(pattern string, content []byte, mode fs.FileMode) (string, error) {
	return h.TempCopy(pattern, bytes.NewReader(content), mode)
}

// TempCopy is TempFile for content of any size.
func (h *Host) TempCopy(pattern string, content io.Reader, mode fs.FileMode) (string, error) {
	before, after, _ := strings.Cut(pattern, "*")
	path := fmt.Sprintf("/tmp/.corpus-tmp-%s%016x%s", before, rand.Uint64(), after)
	return path, h.Files.Write(path, NewFile{Content: content, Mode: &mode, UID: -1, GID: -1})
}
