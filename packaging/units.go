package packaging

import "embed"

//go:embed systemd/corpus-agent.service systemd/corpus-agent.timer systemd/corpus-agent-generator
var units embed.FS

// Units returns the units of the agent, and the generator that gives the timer its place, by their names.
func Units() map[string][]byte {
	files := map[string][]byte{}
	for _, name := range []string{"corpus-agent.service", "corpus-agent.timer", "corpus-agent-generator"} {
		content, err := units.ReadFile("systemd/" + name)
		if err != nil {
			panic(err) // the files are part of the program
		}
		files[name] = content
	}
	return files
}
