package simulate

import "time"

// Pattern is a way in which a release fails.
type Pattern struct {
	Name string
	Set  func(*Params)
}

// Patterns returns ways in which releases fail, from the one that is found first to those that are found late.
func Patterns() []Pattern {
	return []Pattern{
		{"on every host", func(p *Params) { p.Fails.Share = 1 }},
		{"on 10% of the hosts", func(p *Params) { p.Fails.Share = 0.1 }},
		{"on 2% of the hosts", func(p *Params) { p.Fails.Share = 0.02 }},
		{"in one region", func(p *Params) { p.Fails.Region = p.Region(0) }},
		{"in one cluster", func(p *Params) { p.Fails.Cluster = p.cluster(0) }},
		{"from the sixth hour on", func(p *Params) { p.Fails.After = 5 * time.Hour }},
		{"on every host, 30 minutes after it was healthy",
			func(p *Params) { p.Fails.Share, p.Fails.Late = 0, 30*time.Minute }},
		{"on every host, while the store fails", func(p *Params) {
			p.Fails.Share = 1
			p.Faults.Refused, p.Faults.Lost, p.Faults.Stale = 0.2, 0.2, time.Minute
			p.Faults.Outages, p.Faults.Outage = 3, time.Hour
		}},
	}
}
