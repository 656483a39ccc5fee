package file

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
)

// validation holds the arguments of a command that checks new content before it is in place.
type validation struct {
	CheckCmd []string `sls:"check_cmd"`
	TmpDir   string   `sls:"tmp_dir"`
	TmpExt   string   `sls:"tmp_ext"`
}

func (v validation) wanted() bool { return len(v.CheckCmd) > 0 }

// validate writes the new file to a temporary path with its mode and owner, and runs check_cmd with that path
// as its last argument. checked reads the content that the command checked; done removes the file.
func (v validation) validate(ctx context.Context, h *host.Host, f *family, name string,
	file host.NewFile) (checked io.Reader, done func(), err error) {
	temp, remove, err := v.temporary(h)
	if err == nil {
		err = h.Files.Write(temp, file)
	}
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("writing a file for check_cmd: %w", err)
	}
	for _, command := range v.CheckCmd {
		out, err := h.Shell(ctx, host.Line{Text: command + " " + temp, Named: true})
		if err == nil && (out.Code != 0 || out.TimedOut) {
			err = f.refused(command, name, out)
		}
		if err != nil {
			remove()
			return nil, nil, err
		}
	}
	r, err := h.Files.Open(temp)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return r, func() { _ = r.Close(); remove() }, nil
}

// temporary returns the path for the file. Without a tmp_dir, it is in a directory of its own, because the program of
// check_cmd may read other files beside it.
func (v validation) temporary(h *host.Host) (file string, remove func(), err error) {
	if v.TmpDir != "" {
		file = path.Join(v.TmpDir, host.TempName("*"+v.TmpExt))
		return file, func() { _ = h.Files.Remove(file) }, nil
	}
	dir, done, err := h.TempDir("check-*", 0o700)
	if err != nil {
		return "", func() {}, err
	}
	return dir + "/check" + v.TmpExt, func() { _ = done() }, nil
}

// refused returns the error for content that check_cmd rejects.
func (f *family) refused(command, name string, out host.Output) error {
	text := strings.TrimSpace(out.Stdout + "\n" + out.Stderr)
	err := fmt.Errorf("check_cmd refuses the new content of %s: `%s` ended with code %d", name, command, out.Code)
	if text != "" {
		err = fmt.Errorf("%w: %s", err, f.seen(text))
	}
	if host.NotStarted(out.Code) {
		return diag.Command.Hint(err,
			"the file is as it was; install the program of check_cmd in a state that this one requires, "+
				"or correct the command")
	}
	return diag.Edit.Hint(err, "the file is as it was; correct its source")
}
