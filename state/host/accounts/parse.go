package accounts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/host/passwd"
)

// lines reads an account file. A root without the file has no accounts.
func (a *Accounts) lines(path string) (string, error) {
	data, err := a.files.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, fs.ErrPermission) && os.Geteuid() != 0:
		return "", diag.Rights.Hint(fmt.Errorf("reading accounts: %w", err), "run as root")
	case err != nil:
		return "", fmt.Errorf("reading accounts: %w", err)
	}
	return string(data), nil
}

func parseShadow(text string) []host.Shadow {
	var list []host.Shadow
	for f := range passwd.Records(text, 9) {
		list = append(list, host.Shadow{
			Name: f[0], Hash: f[1], LastChange: days(f[2]), Min: days(f[3]), Max: days(f[4]), Warn: days(f[5]),
			Inactive: days(f[6]), Expire: days(f[7]),
		})
	}
	return list
}

// days parses a field of shadow; an empty one is -1.
func days(field string) int {
	n, err := strconv.Atoi(field)
	if err != nil {
		return -1
	}
	return n
}

func number(id int) string { return strconv.Itoa(id) }
