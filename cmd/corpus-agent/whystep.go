package main

import (
	"context"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent"
	"github.com/corpus-agent/corpus-agent/agent/inspect"
)

// whyStep explains the steps that a word selects.
func (p *program) whyStep(ctx context.Context, a *agent.Agent, t inspect.Trees, word string) error {
	explanations, err := a.WhyStep(ctx, t, word)
	if err != nil {
		return err
	}
	var texts []string
	for _, e := range explanations {
		texts = append(texts, strings.TrimRight(e.Text(), "\n"))
	}
	return p.answer(explanations, strings.Join(texts, "\n\n"))
}
