package host

import "github.com/corpus-agent/corpus-agent/artifact/process"

// GitLogins takes logins out of the URLs that a program which runs git is given by its arguments, and returns the URLs
// without them and the variables of its environment that give them to git: see process.GitLogins.
func GitLogins(urls ...string) (plain, env []string) { return process.GitLogins(urls...) }
