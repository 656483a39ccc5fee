package host

import "sync"

// OwnUnit is the unit that runs the agent. A state that starts, stops or restarts it would wait for the end
// of the very run that it is part of, so that is put off until the run is over.
type OwnUnit struct {
	Name string // in full

	mu   sync.Mutex
	verb UnitVerb // the last that was asked for; "" for none
}

// Pending is what is to be done to the unit once the run is over; "" for nothing.
func (o *OwnUnit) Pending() UnitVerb {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.verb
}

func (o *OwnUnit) Is(name string) bool { return o != nil && UnitName(name) == o.Name }

func (o *OwnUnit) Put(verb UnitVerb) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.verb = verb
}

// Active is the state of the unit as it will be: a run that is under way in it is activating it.
func (o *OwnUnit) Active(now string) string {
	switch verb := o.Pending(); {
	case verb == Stop:
		return "inactive"
	case verb != "" || now == "activating":
		return "active"
	}
	return now
}
