package host

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
)

// tempPrefix starts the names of temporary files, this package's own and those of states.
const tempPrefix = ".corpus-tmp-"

// TempName is a file name that no other run will use. A * in the pattern stands for what makes it
// its own.
func TempName(pattern string) string {
	before, after, _ := strings.Cut(pattern, "*")
	return fmt.Sprintf(tempPrefix+"%s%016x%s", before, rand.Uint64(), after)
}

// SweepTemp removes the temporary files that a run left in a directory which was cut short. The caller
// sees to it that no other run is under way.
func (h *Host) SweepTemp(dir string) error {
	names, err := h.Files.ReadDir(dir)
	if err != nil {
		return nil // it is not there any more, or no directory
	}
	var errs []error
	for _, name := range names {
		if ownTemp(name) {
			errs = append(errs, h.Files.RemoveAll(dir+"/"+name))
		}
	}
	return errors.Join(errs...)
}

// TempFile makes a file in /tmp with the given content and a TempName. The caller removes it.
func (h *Host) TempFile(pattern string, content []byte, mode fs.FileMode) (string, error) {
	return h.TempCopy(pattern, bytes.NewReader(content), mode)
}

// TempCopy is TempFile for content of any size.
func (h *Host) TempCopy(pattern string, content io.Reader, mode fs.FileMode) (string, error) {
	path := "/tmp/" + TempName(pattern)
	return path, h.Files.Write(path, NewFile{Content: content, Mode: &mode, UID: -1, GID: -1})
}
