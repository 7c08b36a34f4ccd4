from engine import WorkflowStep, workflow


@workflow
async def refund(step: WorkflowStep, order: str) -> str:
    """Ask before money goes back."""
    await step.request("approve", bool, message=f"Refund {order}?", assignees=["ann@shop.example"])
    return order
