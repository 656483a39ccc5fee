package file

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// backupTo is the path under the directory of backups where a file that is about to be replaced is
// kept: its own path, with the time in Salt's form.
func (f *family) backupTo(file string, now time.Time) string {
	stamp := now.Format("Mon_Jan_02_15:04:05_") + fmt.Sprintf("%06d_%d", now.Nanosecond()/1000, now.Year())
	return path.Join(f.Cache, "file_backup", path.Dir(file), path.Base(file)+"_"+stamp)
}

// backUp keeps a copy of a file, if a backup is asked for in this way and the file is there.
func (f *family) backUp(ctx context.Context, h *host.Host, how, file string) error {
	if how != "minion" && how != "both" {
		return nil
	}
	info, there, err := look(h.Files.Lstat, file)
	if err != nil || !there {
		return err
	}
	copied := f.backupTo(file, time.Now())
	if err := parents(h, copied, nobody()); err != nil {
		return fmt.Errorf("making room for the backup of %s: %w", file, err)
	}
	if err := copyOne(ctx, h, file, copied, info, ownerOf(h, info)); err != nil {
		return fmt.Errorf("backing up %s: %w", file, err)
	}
	return nil
}

// backupWarning tells of a way to back up that there is none of.
func backupWarning(how string) []string {
	if how == "master" || how == "both" {
		return []string{fmt.Sprintf("backup: %s: there is no master to keep a copy", how)}
	}
	return nil
}
