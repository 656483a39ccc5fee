package account

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// checkFile returns an error for an open file of the configuration, in a program of root, that another user can change:
// it names servers, and a program that runs as root.
func checkFile(f *os.File) error {
	for _, given := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if strings.HasPrefix(f.Name(), given) {
			return nil // the caller opened it
		}
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // such as /dev/null
		return err
	}
	if err := rootsOwn(f.Name()); err != nil {
		return diag.Exposed.Hint(fmt.Errorf("AWS's configuration: %w", err),
			"give it to root, and let root alone change it (chmod go-w); or name another file in AWS_CONFIG_FILE or "+
				"AWS_SHARED_CREDENTIALS_FILE")
	}
	return nil
}

// checkProcess returns an error for a credential_process, in a program of root, that names a file that another user can
// change.
func checkProcess(command string) error {
	dir, _ := os.UserHomeDir()
	expanded := strings.NewReplacer("~/", dir+"/", "$HOME/", dir+"/", "${HOME}/", dir+"/").Replace(command)
	for _, file := range value.PathsIn(expanded) {
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if err := rootsOwn(file); err != nil {
			return diag.Exposed.Hint(fmt.Errorf("root does not run the credential_process: %w", err),
				"give the file and the directories above it to root, so that no other user can change them")
		}
	}
	return nil
}

// rootsOwn returns an error for a file that another user can change, if this program runs as root.
func rootsOwn(file string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	root, err := walk.Open(walk.Options{Dir: "/", Safe: true})
	if err != nil {
		return err
	}
	defer root.Close()
	return root.Source(file, walk.Trust{})
}
