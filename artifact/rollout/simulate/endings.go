package simulate

import "time"

// ending is the end of a deploy.
type ending struct {
	at   time.Time
	host int
}

// endings is a heap, the earliest first.
type endings []ending

func (e endings) Len() int { return len(e) }

func (e endings) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].host < e[j].host
}

func (e endings) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

func (e *endings) Push(x any) { *e = append(*e, x.(ending)) }

func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
