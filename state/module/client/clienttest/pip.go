package clienttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// Pip simulates pip.
func (i Installed) Pip(args []string, c host.Command) (string, error) {
	if len(args) > 1 && args[0] == "-m" {
		args = args[2:]
	}
	switch args[0] {
	case "list":
		all := []map[string]string{}
		for name, version := range i.Read() {
			if slices.Contains(args, "--outdated") {
				if version != "2.0" {
					all = append(all, map[string]string{"name": name, "version": version, "latest_version": "2.0"})
				}
				continue
			}
			all = append(all, map[string]string{"name": name, "version": version})
		}
		data, err := json.Marshal(all)
		return "WARNING: something\n" + string(data), err
	case "install":
		var all []string
		for _, word := range Words(args[1:], "--requirement", "--trusted-host", "--editable") {
			name, _, _ := strings.Cut(word, ">")
			all = append(all, name)
		}
		for n, arg := range args {
			if arg == "--requirement" {
				text, err := i.Host.Files.ReadFile(args[n+1])
				if err != nil {
					return "", err
				}
				for _, line := range strings.Fields(string(text)) {
					name, _, _ := strings.Cut(line, ">")
					all = append(all, name)
				}
			}
		}
		if slices.Contains(c.Env, "PIP_INDEX_URL=https://me:s3cret@example.org/simple") {
			all = append(all, "from-the-index")
		}
		return "", i.Change(true, all, "==")
	case "uninstall":
		return "", i.Change(false, Words(args[1:]), "==")
	}
	return "", fmt.Errorf("pip has no %s", args[0])
}
