package file

import (
	"context"
	"fmt"
	"path"
	"time"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// backupTo returns the path of a backup: the path of the file below the directory of backups, with a time stamp
// in Salt's format appended.
func (f *family) backupTo(file string, now time.Time) string {
	stamp := now.Format("Mon_Jan_02_15:04:05_") + fmt.Sprintf("%06d_%d", now.Nanosecond()/1000, now.Year())
	return path.Join(f.Cache, "file_backup", path.Dir(file), path.Base(file)+"_"+stamp)
}

// backUp copies an existing file to the directory of backups if the backup argument is minion or both.
func (f *family) backUp(ctx context.Context, h *host.Host, how, file string) error {
	if how != "minion" && how != "both" {
		return nil
	}
	info, there, err := look(h.Files.Lstat, file)
	if err != nil || !there {
		return err
	}
	copied := f.backupTo(file, time.Now())
	err = f.backups(h)
	if err == nil {
		err = parents(h, copied, unchanged())
	}
	if err != nil {
		return fmt.Errorf("making room for the backup of %s: %w", file, err)
	}
	if err := copyOne(ctx, h, file, copied, info, ownerOf(h, info)); err != nil {
		return fmt.Errorf("backing up %s: %w", file, err)
	}
	return nil
}

// backups makes the directory of backups, which root alone can read: a file may have been protected by the directory
// that it was in.
func (f *family) backups(h *host.Host) error {
	dir := path.Join(f.Cache, "file_backup")
	if err := parents(h, dir, unchanged()); err != nil {
		return err
	}
	info, there, err := look(h.Files.Lstat, dir)
	switch {
	case err != nil:
		return err
	case !there:
		return h.Files.Mkdir(dir, 0o700)
	case info.IsDir() && info.Mode.Perm() != 0o700:
		return h.Files.Chmod(dir, 0o700)
	}
	return nil
}

// backupWarning returns a warning for values of the backup argument that need a master.
func backupWarning(how string) []string {
	if how == "master" || how == "both" {
		return []string{fmt.Sprintf("backup: %s: there is no master to keep a copy", how)}
	}
	return nil
}
