"""Plain linear teachers: solved to their optimum one by one, and their votes counted by one matrix product."""
