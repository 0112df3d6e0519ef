export function App() {
  return <main>Holdfast</main>;
}
