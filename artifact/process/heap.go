package process

import (
	"os"
	"runtime/debug"
	"sync"
)

// often counts the callers of CollectOften that have not ended.
var often struct {
	sync.Mutex
	callers int
	before  int // the percentage of growth before the first of them
}

// CollectOften makes the garbage collector run each time the heap has grown by 30 percent, until the returned function
// is called. It is for work that has little memory live at any time and allocates much: there, collecting early costs
// almost nothing and lowers the peak. Calls may be concurrent; the last one that ends restores the percentage, to at
// most 100, since the heap has outgrown a delay of the first collection by then. GOGC in the environment wins.
func CollectOften() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	often.Lock()
	defer often.Unlock()
	if often.callers++; often.callers == 1 {
		often.before = debug.SetGCPercent(30)
	}
	return func() {
		often.Lock()
		defer often.Unlock()
		if often.callers--; often.callers == 0 {
			debug.SetGCPercent(min(often.before, 100))
		}
	}
}
