package serving

import (
	"slices"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

func TestPortsOfProbes(t *testing.T) {
	of := func(kind, target string) recipe.Probe {
		return recipe.Probe{Kind: kind, Target: target, Project: "shop"}
	}
	probes := []recipe.Probe{
		of(recipe.ProbeHTTP, "http://localhost/health"),
		of(recipe.ProbeHTTP, "https://127.0.0.1/health"),
		of(recipe.ProbeHTTP, "http://[::1]:8080/health"),
		of(recipe.ProbeTCP, "localhost:8080"),
		of(recipe.ProbeTCP, ":9000"),
		of(recipe.ProbeTCP, "192.0.2.1:22"),        // another host
		of(recipe.ProbeTCP, "db.example.com:5432"), // the name would need a lookup
		of(recipe.ProbeHTTP, "http://exa mple/"),
		of(recipe.ProbeUnit, "shop.service"),
		{Kind: recipe.ProbeTCP, Target: "localhost:1234"}, // a probe of the host's configuration
	}
	if got, want := portsOf(probes), []uint16{80, 443, 8080, 9000}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
