package host

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/state/diag"
)

// CheckSudoers asks visudo whether sudo will read a file that is about to be written, since one mistake
// in it locks everybody out of sudo. Files that sudo does not read are not its concern; nor can it
// answer where sudo is not installed or nothing can be run.
func (h *Host) CheckSudoers(ctx context.Context, file string, content []byte) error {
	if !readBySudo(file) || h.Commands.Allowed("visudo") != nil {
		return nil
	}
	visudo, ok := h.Which("visudo")
	if !ok {
		return nil
	}
	temp, err := h.TempFile("sudoers-*", content, 0o440)
	if err != nil {
		return err
	}
	out, err := h.Commands.Run(ctx, Command{Argv: []string{visudo, "-c", "-f", temp}, Env: ToolEnvironment(), Limit: time.Minute, Quiet: true})
	if err := errors.Join(err, h.Files.Remove(temp)); err != nil {
		return err
	}
	if out.Code == 0 {
		return nil
	}
	said := strings.ReplaceAll(FirstLines(out.Stderr), temp, file)
	return diag.WithHint(fmt.Errorf("sudo would not read %s: %s", file, said), "correct the line it names; the file is as it was")
}

// readBySudo tells which files sudo reads: its own, and those in its directory whose names are not of
// the kind that editors and packages leave behind.
func readBySudo(file string) bool {
	if file == "/etc/sudoers" {
		return true
	}
	dir, name := path.Split(path.Clean(file))
	return dir == "/etc/sudoers.d/" && !strings.Contains(name, ".") && !strings.HasSuffix(name, "~")
}
