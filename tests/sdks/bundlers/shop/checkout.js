class PaymentError extends Error {
  name = "PaymentError";
}

function charge(order) {
  if (order.total > 10) {
    throw new PaymentError(`order ${order.id} cannot be charged`);
  }
  return order.total;
}

function collectOrders(orders) {
  let charged = 0;
  for (const order of orders) {
    charged += charge(order);
  }
  return charged;
}

export function checkOut(id) {
  const charged = collectOrders([{ id, total: 4 }, { id: id + 1, total: 12 }]);
  console.log(charged);
}
