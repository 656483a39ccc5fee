package members

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
)

// decide changes how many members run, if the rule of the class has said so for long enough. Only nodes with a member
// do, and the first one that writes decides.
func (n *Node) decide(ctx context.Context, v *view) error {
	if v.of.Metric == "" || !n.holdsOne(v) {
		delete(n.Memory.Above, v.of.ID)
		delete(n.Memory.Below, v.of.ID)
		return nil
	}
	values := make([]*float64, v.count)
	for i, one := range v.members[:v.count] {
		if one.Lease == nil {
			return nil // the step before is not carried out
		}
		values[i] = one.Value
	}
	to, mean := Judge(v.of, values)
	above := n.lasts(n.Memory.Above, v, to > v.count)
	below := n.lasts(n.Memory.Below, v, to < v.count)
	if !above && !below {
		return nil
	}
	w := wanted{Class: v.of.ID, Count: to, Node: n.Name, Host: n.Host,
		Why: fmt.Sprintf("the mean of %s of %d members is %.4g", v.of.Metric, v.count, mean)}
	_, _, err := n.put(ctx, v.place(n.Channel, "wanted"), v.tag, w)
	return err
}

func (n *Node) holdsOne(v *view) bool {
	for _, one := range v.members {
		if n.mine(one) && one.Drain == nil {
			return true
		}
	}
	return false
}

// lasts records since when something is so, and reports whether that is as long as the rule of the class demands. It
// begins again with each change of the wanted number.
func (n *Node) lasts(since map[string]time.Time, v *view, so bool) bool {
	at, known := since[v.of.ID]
	switch {
	case !so:
		delete(since, v.of.ID)
		return false
	case !known || at.Before(v.since) || at.After(n.now):
		at = n.now
		since[v.of.ID] = at
	}
	return n.now.Sub(at) >= cloud.Period(v.of.For)
}

// clamp returns the value of a member as it counts: one that is wrong, or a lie, counts as at most twice the limit.
func clamp(value float64, of cloud.Class) float64 {
	if math.IsNaN(value) {
		return 0
	}
	return min(max(value, 0), 2*cloud.Limit(of.Above))
}

// Judge returns how many members of a class should run by the values of those that do, and the mean of the values. Nil
// stands for a member that did not answer. More members are wanted if the mean is above the limit: as many as bring it
// to the limit, and at most twice as many as now. One less is wanted if the mean is below the other limit, all members
// have answered, and the rest would not be above the first one.
func Judge(of cloud.Class, values []*float64) (count int, mean float64) {
	sum, answers, count := 0.0, 0, len(values)
	for _, value := range values {
		if value != nil {
			sum += clamp(*value, of)
			answers++
		}
	}
	if answers == 0 {
		return count, 0
	}
	mean = sum / float64(answers)
	above, below := cloud.Limit(of.Above), cloud.Limit(of.Below)
	switch {
	case mean > above:
		return min(of.Max, max(count+1, int(math.Ceil(mean*float64(count)/above)))), mean
	case mean < below && answers == count && count > of.Min && sum/float64(count-1) <= above:
		return count - 1, mean
	}
	return count, mean
}
