package fleet

import "github.com/corpus-agent/corpus-agent/state/diag"

// topicOf returns the topic of a kind of attention.
func topicOf(what string) diag.Topic {
	return map[string]diag.Topic{
		StoreClock: diag.Clock, Unreadable: diag.Metadata, Halted: diag.Rollout, Stuck: diag.Rollout, Paused: diag.Rollout,
		WithdrawnRollout: diag.Withdrawn, Unseen: diag.Evidence, NoResult: diag.Evidence, Missing: diag.Rollout,
		OldAgent: diag.Rollout, NoEvidence: diag.Credentials, string(Failed): diag.Run, string(RolledBack): diag.Run,
		string(Quarantined): diag.Held, string(Held): diag.Held, NoChannel: diag.Unpublished, WrongKey: diag.Host,
		Conflict: diag.Host, Copied: diag.Host, Renamed: diag.Host, Unregistered: diag.Host, Flooded: diag.Evidence,
		Invalid: diag.Evidence, NoRecord: diag.Evidence, Ahead: diag.Clock, Withdrawn: diag.Withdrawn, Silent: diag.Agent,
	}[what]
}

// Code adds the code of its kind to the hint of each entry. A hint that has a code keeps it, and what hosts advise is
// not changed.
func Code(all []Attention) {
	for i := range all {
		a, topic := &all[i], topicOf(all[i].What)
		if own := a.Hint == a.advice || len(a.Said) == 0; own {
			a.Hint = topic.Coded(a.Hint)
		}
		a.advice = topic.Coded(a.advice)
	}
}
