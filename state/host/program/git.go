package program

import (
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/clone"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Git describes how the program git reaches other repositories. The zero Git uses the settings of its user.
type Git struct {
	SSH      string   // ssh with options; "" for the user's own
	User     string   // for HTTP
	Password string   // for HTTP
	Settings []string // of git, as alternating keys and values
}

// Program returns git without prompts on a terminal. A user and a password are in its environment, from which a
// credential helper prints them.
func (g Git) Program() Program {
	settings := g.Settings
	if g.User != "" || g.Password != "" {
		settings = append(settings, "credential.helper",
			`!f() { echo "username=$CORPUS_GIT_USER"; echo "password=$CORPUS_GIT_PASSWORD"; }; f`)
	}
	env := append(clone.Config(settings...), "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
		"SUDO_UID=") // with SUDO_UID, git as root trusts the clones of that user
	if g.SSH != "" {
		env = append(env, "GIT_SSH_COMMAND="+g.SSH)
	}
	if g.User != "" || g.Password != "" {
		env = append(env, "CORPUS_GIT_USER="+g.User, "CORPUS_GIT_PASSWORD="+g.Password)
	}
	return Program{Name: "git", Dir: "/", Env: env, Remote: true, Hide: redact.URLs}
}

// IdentityOption returns the option of ssh for a private key.
func IdentityOption(key string) string { return " -i '" + strings.ReplaceAll(key, "'", `'\''`) + "'" }
