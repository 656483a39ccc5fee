package records

// TimerUnit is the unit that runs deploys.
const TimerUnit = "corpus-agent.timer"

// ServiceUnit is the unit that the timer starts.
const ServiceUnit = "corpus-agent.service"
